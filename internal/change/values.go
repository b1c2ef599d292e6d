package change

import (
	"errors"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/lazy"
)

const maxSetting = 4096 // bytes of a kernel setting

// kernelNumbers are how the kernel writes those of its files that hold numbers, by
// their names. The rest (/proc/sys) is a line of text, of which the kernel knows more than we.
var kernelNumbers = map[string]func() *regexp.Regexp{
	"rps_cpus":          lazy.Regexp(`^[0-9a-f]{1,8}(,[0-9a-f]{8})*$`),
	"smp_affinity_list": lazy.Regexp(`^[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*$`),
	"tx_queue_len":      lazy.Regexp(`^[0-9]{1,10}$`),
	"cpu.max":           lazy.Regexp(`^(max|[0-9]{1,19}) [0-9]{1,19}$`),
	"cpu.cfs_quota_us":  lazy.Regexp(`^(-1|[0-9]{1,19})$`),
	"cpu.cfs_period_us": lazy.Regexp(`^[0-9]{1,19}$`),
}

// checkValues says which value of a part its target can never have had, or been given.
func (p part) checkValues() error {
	if p.Old == nil || p.New == nil {
		return errors.New("want the values before and after, and one is missing")
	}
	for _, v := range []string{string(p.Old), string(p.New)} {
		if err := p.Target.checkValue(v); err != nil {
			return err
		}
	}
	for _, v := range p.Between {
		err := p.Target.checkValue(v)
		if p.Target.Kind == inSocket { // what a configuration asks listen(2) for may be below 0
			err = inRange(v, math.MinInt32, math.MaxInt32)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkValue says what is no value of a target.
func (p target) checkValue(v string) error {
	if p.Kind == inKernel {
		return checkKernelValue(p.Path, v)
	}
	for _, v := range threadValues(v) {
		if err := p.checkOne(v); err != nil {
			return err
		}
	}
	return nil
}

func checkKernelValue(file, v string) error {
	shape := kernelNumbers[path.Base(file)]
	if strings.HasPrefix(file, "/proc/sys/") {
		shape = nil
	}
	if len(v) > maxSetting || strings.ContainsAny(v, "\n\r\x00") || shape != nil && !shape().MatchString(v) {
		return fmt.Errorf("%.20q… is no value of this setting", v)
	}
	return nil
}

// checkOne checks a value of a thread, or of what has one value.
func (p target) checkOne(v string) (err error) {
	switch p.Kind {
	case inSocket, inRing:
		return inRange(v, 0, math.MaxInt32)
	case inNice:
		return inRange(v, -20, 19)
	case inCPUs:
		_, err = parseCPUs(v)
	case inPolicy:
		if _, err = policyNumber(v); err == nil && slices.Contains(realTime, strings.TrimSuffix(v, resetOnForkText)) {
			err = fmt.Errorf("%q: none of real time is ever set here", v)
		}
	case inLimit:
		soft, hard, _ := strings.Cut(v, ":")
		now, err1 := limitNumber(soft)
		most, err2 := limitNumber(hard)
		if err = errors.Join(err1, err2); err == nil && now > most {
			err = fmt.Errorf("%q: the soft limit is above the hard one", v)
		}
	}
	return err
}

// inRange wants a whole number.
func inRange(v string, least, most int64) error {
	if n, err := strconv.ParseInt(v, 10, 64); err != nil || n < least || n > most {
		return fmt.Errorf("%.20q: want a whole number from %d to %d", v, least, most)
	}
	return nil
}
