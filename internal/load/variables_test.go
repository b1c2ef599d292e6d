package load

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
)

func TestReadVariables(t *testing.T) {
	got, err := ReadVariables([]byte("\ufeffid,user-name\n1,\"a, \"\"b\"\"\n2\"\n\n3,\n"))
	want := &model.Variables{Names: []string{"id", "user-name"}, Rows: 2, Values: [][]string{{"1", "a, \"b\"\n2"}, {"3", ""}}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	for text, want := range map[string]string{
		"": "nothing in it", "id\n": "no row of values", "id,id\n1,2\n": "twice", "1d\n1\n": `name "1d"`, "a b\n1\n": `name "a b"`, "a,b\n1\n": "wrong number of fields",
		"a\n\"1\n": "line 2", "a,\n1,2\n": `name ""`, "a\n" + strings.Repeat("1\n", maxRows+1): "more than 100000 rows",
	} {
		if got, err := ReadVariables([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, %v; want an error with %q", text, got, err, want)
		}
	}
}

// Values are escaped where they would mean something else, and nowhere else; braces that are no variable's stay.
func TestVariablesInARequest(t *testing.T) {
	plan := model.LoadPlan{URL: "http://127.0.0.1/u/{id}/x?q={id}&r={name}", Method: "POST", Connections: 1, Requests: 1, KeepAlive: true,
		Headers: []string{"X-User: {id} {other}"}, Body: []byte(`{"id": "{id}", "n": {name}}`),
		Variables: &model.Variables{Names: []string{"id", "name"}, Values: [][]string{{"a/b c?&é", "{id}"}, {"", "x"}}}}
	j, err := prepare(plan)
	if err != nil {
		t.Fatal(err)
	}
	first, second := string(j.requests[0].bytes), string(j.requests[1].bytes)
	for _, part := range []string{"POST /u/a%2Fb%20c%3F&%C3%A9/x?q=a%2Fb+c%3F%26%C3%A9&r=%7Bid%7D HTTP/1.1\r\n", "X-User: a/b c?&é {other}\r\n", "\r\n\r\n" + `{"id": "a/b c?&é", "n": {id}}`} {
		if !strings.Contains(first, part) {
			t.Errorf("the first row's request is %q, want %q in it", first, part)
		}
	}
	if !strings.HasPrefix(second, "POST /u//x?q=&r=x HTTP/1.1\r\n") || !strings.HasSuffix(second, `{"id": "", "n": x}`) {
		t.Errorf("the second row's request is %q", second)
	}
	if kept := plan.WithoutSecrets(); kept.Variables.Values != nil || kept.Variables.Rows != 2 {
		t.Errorf("a run keeps %+v, want the names and the number of rows", kept.Variables)
	}
}

func TestVariablesThatDoNotFit(t *testing.T) {
	for why, c := range map[string]struct {
		change func(*model.LoadPlan)
		want   string
	}{
		"none is used":           {func(p *model.LoadPlan) { p.URL = "http://127.0.0.1/" }, "none of the variables is used: want {id}"},
		"one that is not there":  {func(p *model.LoadPlan) { p.URL = "http://127.0.0.1/{di}" }, "{di} in \"/{di}\": the file of variables has no such name; it has id"},
		"a line end in a header": {func(p *model.LoadPlan) { p.Headers = []string{"X: {id}"} }, "row 2: header"},
		"in a target's, too": {func(p *model.LoadPlan) {
			p.Targets = []model.Target{{Name: "a", Method: "GET", Path: "/", Weight: 1, Headers: []string{"X: {id}"}}}
		}, "row 2: target 1 of 1: header"},
		"a path that is no path": {func(p *model.LoadPlan) {
			p.Targets = []model.Target{{Name: "a", Method: "GET", Path: "/{id}/x", Weight: 1}}
			p.Variables.Values[1][0] = ""
		}, "begins with a single /"},
		"rows of other lengths": {func(p *model.LoadPlan) { p.Variables.Values[1] = nil }, "row 2 has 0 values"},
		"with what was recorded": {func(p *model.LoadPlan) {
			p.Recorded = &model.Recording{From: "access log"}
			p.Targets = []model.Target{{Name: "a", Method: "GET", Path: "/", Weight: 1}}
		}, "a recording has none"},
		"in the place of the host": {func(p *model.LoadPlan) { p.URL = "http://{id}/" }, "invalid"},
		"more than can be kept":    {func(p *model.LoadPlan) { p.Body = make([]byte, maxRendered/2) }, "take more than"},
	} {
		plan := model.LoadPlan{URL: "http://127.0.0.1/{id}", Connections: 1, Requests: 1, KeepAlive: true, Variables: &model.Variables{Names: []string{"id"}, Values: [][]string{{"1"}, {"2\n"}}}}
		c.change(&plan)
		if err := Check(plan); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", why, err, c.want)
		}
	}
}

// Each request takes the next row: of 10 rows, 1,000 requests ask for each 100 times. nginx counts.
func TestRowsTakeTheirTurns(t *testing.T) {
	for _, c := range []struct {
		why    string
		change func(*model.LoadPlan)
	}{
		{"closed loop", func(*model.LoadPlan) {}},
		{"open loop", func(p *model.LoadPlan) { p.Rate, p.Threads = 5000, 2 }},
		{"pipelined", func(p *model.LoadPlan) { p.Pipeline = 4 }},
		{"HTTP/2", func(p *model.LoadPlan) { p.HTTP2, p.Streams = true, 4 }},
		{"targets", func(p *model.LoadPlan) {
			p.Targets = []model.Target{{Name: "a", Method: "GET", Path: "/{id}?who={who}", Weight: 1}, {Name: "b", Method: "GET", Path: "/{id}?who={who}", Weight: 3}}
		}},
	} {
		t.Run(c.why, func(t *testing.T) {
			address, counts := startNginx(t, map[bool]string{true: "http2"}[c.why == "HTTP/2"], "$request_uri $http_x_who", "location / { return 200 ok; }")
			plan := model.LoadPlan{URL: "http://" + address + "/{id}?who={who}", Headers: []string{"X-Who: {who}"}, Connections: 4, Threads: 1, Requests: 1000, KeepAlive: true, TimeoutMS: 600_000,
				Variables: &model.Variables{Names: []string{"id", "who"}}}
			want := map[string]int64{}
			for i := range 10 {
				plan.Variables.Values = append(plan.Variables.Values, []string{fmt.Sprint(i), fmt.Sprint("user", i)})
				want[fmt.Sprintf("/%d?who=user%d user%d", i, i, i)] = 100
			}
			c.change(&plan)
			if got := phaseNamed(runPlan(t, t.Context(), plan), "hold").Outcomes; got["2xx"] != 1000 {
				t.Errorf("%v, want 1000 good", got)
			}
			if diff := cmp.Diff(want, counts()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTargetsMayHaveVariables(t *testing.T) {
	plan := targetsPlan
	plan.Variables = &model.Variables{Names: []string{"id"}, Values: [][]string{{"1"}, {"2"}}}
	var err error
	if plan.Targets, err = ReadTargets([]byte(`{"path": "/a b/{id}?x={id}", "body": {"id": "{id}"}}`), plan); err != nil {
		t.Fatal(err)
	}
	if got := plan.Targets[0]; got.Path != "/a%20b/{id}?x={id}" || got.Name != "POST /a%20b/{id}?x={id}" {
		t.Errorf("%+v, want the places of the variables as they were written", got)
	}
	j, err := prepare(plan)
	if err != nil || !bytes.HasPrefix(j.requests[1].bytes, []byte("POST /a%20b/2?x=2 HTTP")) || !bytes.HasSuffix(j.requests[1].bytes, []byte(`{"id": "2"}`)) {
		t.Errorf("%v: the second row's request is %q", err, j.requests[1].bytes)
	}
}

// FuzzReadVariables: whatever is taken makes requests each of which is one for net/http, too.
func FuzzReadVariables(f *testing.F) {
	f.Add([]byte("a,b\n1,2\n"), "/x/{a}?q={b}", "{a}", "{b}{c}")
	f.Add([]byte("a\n\"x\r\nY: z\"\n%zz\n"), "/{a}", "{a}", "")
	f.Fuzz(func(t *testing.T, text []byte, path, header, body string) {
		v, err := ReadVariables(text)
		if err != nil || len(v.Values) > 100 {
			return
		}
		plan := model.LoadPlan{URL: "http://127.0.0.1/" + path, Method: "POST", Headers: []string{"X-Fuzz: " + header}, Body: []byte(body), Connections: 1, Requests: 1, KeepAlive: true, Variables: v}
		j, err := prepare(plan)
		if err != nil {
			return
		}
		if len(j.requests) != len(v.Values) {
			t.Fatalf("%d requests of %d rows", len(j.requests), len(v.Values))
		}
		for _, r := range j.requests {
			from := bufio.NewReader(bytes.NewReader(r.bytes))
			got, err := http.ReadRequest(from)
			if err != nil {
				t.Fatalf("request %q: %v", r.bytes, err)
			}
			_, err = io.Copy(io.Discard, got.Body)
			if _, more := from.ReadByte(); err != nil || more != io.EOF || got.Host != "127.0.0.1" || len(got.Header) > 4 {
				t.Fatalf("request %q is for %s with %v, %v, %v", r.bytes, got.Host, got.Header, err, more)
			}
		}
	})
}
