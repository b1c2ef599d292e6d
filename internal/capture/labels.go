package capture

import (
	"strconv"

	"plimsoll/internal/capture/cause"
	"plimsoll/internal/capture/decode"
)

// LabelsHeader is the first line of the table of labels.
const LabelsHeader = "frame\tstream\tlabels\tdupack_num\trto\n"

// AppendLabels appends the packet's line of the table of labels, nothing if it has none.
func (f *Frame) AppendLabels(b []byte) []byte {
	r := &f.Result
	if f.Kind != decode.TCP || r.Labels == 0 {
		return b
	}
	b = strconv.AppendUint(b, uint64(f.Number), 10)
	b = append(b, '\t')
	b = strconv.AppendUint(b, uint64(r.Conn.Stream), 10)
	b = append(b, '\t')
	b = r.Labels.Append(b)
	b = append(b, '\t')
	if r.DupNumber != 0 {
		b = strconv.AppendUint(b, uint64(r.DupNumber), 10)
	}
	b = append(b, '\t')
	if r.RTO != 0 {
		b = appendSeconds(b, r.RTO)
	}
	return append(b, '\n')
}

// appendSeconds writes ns as seconds with nine places.
func appendSeconds(b []byte, ns int64) []byte {
	if ns < 0 {
		b, ns = append(b, '-'), -ns
	}
	b = strconv.AppendInt(b, ns/1e9, 10)
	b = append(b, '.')
	at := len(b)
	b = append(b, "000000000"...)
	for i, rest := at+8, ns%1e9; rest > 0; i, rest = i-1, rest/10 {
		b[i] = byte('0' + rest%10)
	}
	return b
}

// AppendJudged appends what there is to say of a segment as one line of JSON:
// Wireshark's labels, what it acknowledges, and our own judgement beside them.
// Segments of which there is nothing to say get no line.
func (f *Frame) AppendJudged(b []byte) []byte {
	r := &f.Result
	if f.Kind != decode.TCP || r.Labels == 0 && r.Acks == 0 {
		return b
	}
	number := func(name string, v uint64) {
		b = append(append(append(b, `,"`...), name...), `":`...)
		b = strconv.AppendUint(b, v, 10)
	}
	word := func(name, v string) {
		b = append(append(append(b, `,"`...), name...), `":"`...)
		b = append(append(b, v...), '"')
	}
	seconds := func(name string, ns int64) {
		b = append(append(append(b, `,"`...), name...), `":`...)
		b = appendSeconds(b, ns)
	}
	b = append(b, `{"frame":`...)
	b = strconv.AppendUint(b, uint64(f.Number), 10)
	number("stream", uint64(r.Conn.Stream))
	word("labels", r.Labels.String())
	if r.DupNumber != 0 {
		number("dupack_num", uint64(r.DupNumber))
		number("dupack_frame", uint64(r.DupOf))
	}
	if r.RTO != 0 {
		seconds("rto", r.RTO)
	}
	if r.Acks != 0 {
		number("acks_frame", uint64(r.Acks))
		if r.RTT != 0 { // both stamps are the same: no time was measured
			seconds("ack_rtt", r.RTT)
		}
	}
	if f.Attribution != cause.None {
		word("judgement", f.Attribution.String())
	}
	if f.Reset != nil {
		word("reset_cause", f.Reset.Cause)
	}
	return append(b, '}', '\n')
}

// Comment is what there is to say of a packet, for people; "" for nothing.
func (f *Frame) Comment() string {
	r := &f.Result
	if f.Kind != decode.TCP || r.Labels == 0 {
		return ""
	}
	text := ""
	for l := r.Labels; l != 0; l &= l - 1 {
		if text != "" {
			text += ", "
		}
		text += (l & -l).Words()
	}
	if r.DupNumber != 0 {
		text += " #" + strconv.Itoa(int(r.DupNumber)) + " of frame " + strconv.Itoa(int(r.DupOf))
	}
	if r.RTO != 0 {
		text += " after " + string(appendSeconds(nil, r.RTO)) + " s"
	}
	if f.Attribution != cause.None {
		text += "; " + f.Attribution.Words()
	}
	if f.Reset != nil {
		text += "; " + f.Reset.Cause + ": " + f.Reset.Why + frames(f.Reset.Evidence)
	}
	return text
}

func frames(list []uint32) string {
	text := ""
	for i, n := range list {
		if i == 0 {
			text = " (frames "
		} else {
			text += ", "
		}
		text += strconv.Itoa(int(n))
	}
	if text != "" {
		text += ")"
	}
	return text
}
