package load

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http2/hpack"

	"plimsoll/internal/model"
)

// h2Request is a request as it is sent over HTTP/2, so that sending it is copying it. The first one on a
// connection puts its fields into the server's table, all others name them there.
type h2Request struct {
	first, again []byte
	plain        []byte // for a server without a table
	body         []byte
}

// buildHTTP2 makes a plan's request for HTTP/2.
func buildHTTP2(p model.LoadPlan, u *url.URL) (*h2Request, error) {
	fields, err := requestFields(p, u)
	if err != nil {
		return nil, err
	}
	r := &h2Request{body: p.Body}
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	encode := func() []byte {
		block.Reset()
		for _, f := range fields {
			_ = encoder.WriteField(f) // a buffer takes all
		}
		return bytes.Clone(block.Bytes())
	}
	r.first, r.again = encode(), encode()
	same := bytes.Equal(r.again, encode())
	encoder.SetMaxDynamicTableSize(0)
	r.plain = encode()
	if len(r.plain) > maxHead {
		return nil, fmt.Errorf("the request's headers take %d bytes over HTTP/2: want at most %d", len(r.plain), maxHead)
	}
	if !same || len(p.Targets) > 0 || p.Variables != nil { // they push one another out of the table, or what is in it depends on who came first
		r.first, r.again = r.plain, r.plain
	}
	return r, nil
}

// requestFields are the fields of a request. A header of the plan replaces ours of the same name.
func requestFields(p model.LoadPlan, u *url.URL) ([]hpack.HeaderField, error) {
	authority := hostHeader(u)
	given := map[string]bool{}
	var theirs []hpack.HeaderField
	for _, h := range p.Headers {
		name, value, _ := strings.Cut(h, ":") // buildRequest has seen them all
		name, value = strings.ToLower(name), strings.Trim(value, " \t")
		switch name {
		case "host":
			authority = value
			continue
		case "connection", "keep-alive", "proxy-connection", "upgrade":
			return nil, fmt.Errorf("header %q: HTTP/2 has none; leave it out", h)
		}
		given[name] = true
		theirs = append(theirs, hpack.HeaderField{Name: name, Value: value})
	}
	fields := []hpack.HeaderField{
		{Name: ":method", Value: p.Method}, {Name: ":scheme", Value: u.Scheme}, {Name: ":authority", Value: authority}, {Name: ":path", Value: u.RequestURI()},
	}
	if !given["user-agent"] {
		fields = append(fields, hpack.HeaderField{Name: "user-agent", Value: "plimsoll/" + version()})
	}
	if len(p.Body) > 0 && !given["content-length"] {
		fields = append(fields, hpack.HeaderField{Name: "content-length", Value: strconv.Itoa(len(p.Body))})
	}
	return append(fields, theirs...), nil
}

// Our windows: a reply is never held up by them, as one of wrk's or h2load's is not.
const (
	ourWindow = 1 << 30
	// renewWindow is when what was taken of a window is given back.
	renewWindow = ourWindow / 2
)

// appendHello appends what a client says first.
func appendHello(b []byte) []byte {
	settings := [][2]uint32{{settingPush, 0}, {settingWindow, ourWindow}, {settingMaxHeadSize, maxHead}}
	b = append(b, clientHello...)
	b = appendFrameHead(b, 6*len(settings), frameSettings, 0, 0)
	for _, s := range settings {
		b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, uint16(s[0])), s[1])
	}
	return appendNumberFrame(b, frameWindowUpdate, 0, ourWindow-firstWindow)
}
