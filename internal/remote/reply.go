package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// reply is an answer of /api/v1/query while it is read. Nothing of it is held but
// the series: the whole could be as large as a server likes.
type reply struct {
	in        *json.Decoder
	left      *room
	status    string
	error     string
	errorType string
	series    []series
	// warnings are what Prometheus and Thanos say of an answer that is not whole, part is
	// VictoriaMetrics' word for one.
	warnings []string
	part     bool
}

// partial says in what an answer is not whole, in the server's own words; "" of a whole one.
func (r *reply) partial() string {
	switch {
	case len(r.warnings) > 0:
		return said(strings.Join(r.warnings, "; "))
	case r.part:
		return "some of its storage nodes did not answer (isPartial)"
	}
	return ""
}

// object reads a JSON object and calls back for each field; the callback reads the value.
func (r *reply) object(field func(name string) error) error {
	if err := r.want('{'); err != nil {
		return err
	}
	for r.in.More() {
		key, err := r.in.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string) // a key is nothing else
		if err := field(name); err != nil {
			return err
		}
	}
	return r.want('}')
}

func (r *reply) want(d json.Delim) error {
	token, err := r.in.Token()
	if err != nil {
		return err
	}
	if token != d {
		return fmt.Errorf("%v where %v was expected", token, d)
	}
	return nil
}

func (r *reply) field(name string) error {
	switch name {
	case "status":
		return r.in.Decode(&r.status)
	case "error":
		return r.in.Decode(&r.error)
	case "errorType":
		return r.in.Decode(&r.errorType)
	case "warnings":
		return r.in.Decode(&r.warnings)
	case "isPartial":
		return r.in.Decode(&r.part)
	case "data":
		return r.object(r.data)
	}
	return r.skip()
}

func (r *reply) data(name string) error {
	if name != "result" {
		return r.skip()
	}
	if err := r.want('['); err != nil {
		return err
	}
	for r.in.More() {
		var s series
		if err := r.in.Decode(&s); err != nil {
			return err
		}
		if s.Metric == nil {
			return errors.New("a series without labels")
		}
		if err := r.left.take(s); err != nil {
			return err
		}
		r.series = append(r.series, s)
	}
	return r.want(']')
}

func (r *reply) skip() error {
	var any json.RawMessage
	return r.in.Decode(&any)
}
