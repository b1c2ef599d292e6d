package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"plimsoll/internal/flame"
	"plimsoll/internal/lab"
	"plimsoll/internal/model"
	"plimsoll/internal/report"
	"plimsoll/internal/ruleset"
)

// documents are what commands print with --json, by the names that docs/schema.json gives them.
var documents = map[string]reflect.Type{
	"Report": reflect.TypeFor[model.Report](), "Fleet": reflect.TypeFor[model.Fleet](), "Comparisons": reflect.TypeFor[comparisons](), "Signals": reflect.TypeFor[signalList](),
	"Tracers": reflect.TypeFor[tracerList](), "Doctor": reflect.TypeFor[checkup](), "Tuning": reflect.TypeFor[model.Tuning](),
	"Sweep": reflect.TypeFor[model.Sweep](), "Limit": reflect.TypeFor[limitDocument](), "Knee": reflect.TypeFor[kneeDocument](), "Runs": reflect.TypeFor[runList](), "Snapshot": reflect.TypeFor[snapshotDocument](), "Version": reflect.TypeFor[versionDocument](),
	"Load": reflect.TypeFor[loadDocument](), "Changes": reflect.TypeFor[changesDocument](), "Undone": reflect.TypeFor[undoneDocument](), "Run": reflect.TypeFor[keptRun](),
	"Removed": reflect.TypeFor[removedDocument](), "WouldRemove": reflect.TypeFor[wouldRemove](), "Tools": reflect.TypeFor[toolList](), "Cases": reflect.TypeFor[caseList](),
	"Answers": reflect.TypeFor[caseTruths](), "CaseUp": reflect.TypeFor[game](), "CaseTruth": reflect.TypeFor[lab.Case](), "CaseDown": reflect.TypeFor[caseDown](), "CaseRuns": reflect.TypeFor[caseRuns](),
	"CaseWalk": reflect.TypeFor[caseWalk](), "CaseTest": reflect.TypeFor[labTestDoc](), "CaseTuned": reflect.TypeFor[lab.TuneResult](), "CasesTuned": reflect.TypeFor[casesTuned](), "CaseKilled": reflect.TypeFor[killed](),
	"Rules": reflect.TypeFor[ruleList](), "Rule": reflect.TypeFor[ruleset.Rule](), "Exported": reflect.TypeFor[exportedRules](), "Shelf": reflect.TypeFor[shelfDocument](),
	"Seen": reflect.TypeFor[traceSeen](), "Capture": reflect.TypeFor[captureDocument](), "RulesChecked": reflect.TypeFor[rulesChecked](), "RulesTested": reflect.TypeFor[rulesTested](), "Flame": reflect.TypeFor[flame.Tree](),
}

// printed says which documents a command prints with --json.
var printed = map[string][]string{
	"run": {"Report"}, "again": {"Report", "Fleet", "Load", "Limit", "Knee"}, "watch": {"Report"}, "diagnose": {"Report", "Fleet"}, "snapshot": {"Snapshot"}, "compare": {"Comparisons"}, "serve": {"Shelf"},
	"runs list": {"Runs"}, "runs show": {"Run"}, "runs rm": {"Removed"}, "runs prune": {"Removed", "WouldRemove"},
	"tune": {"Tuning", "Changes"}, "undo": {"Undone"}, "sweep": {"Sweep"}, "load": {"Load", "Limit", "Knee"}, "load-lead": {"Load", "Limit"},
	"lab list": {"Cases", "Answers"}, "lab up": {"CaseUp"}, "lab reveal": {"CaseTruth"}, "lab down": {"CaseDown"}, "lab run": {"CaseRuns"}, "lab test": {"CaseTest"}, "lab walk": {"CaseWalk"},
	"lab tune":   {"CaseTuned", "CasesTuned", "CaseKilled"},
	"rules list": {"Rules"}, "rules show": {"Rule"}, "rules check": {"RulesChecked"}, "rules test": {"RulesTested"}, "rules export": {"Exported"},
	"trace list": {"Tracers"}, "trace NAME": {"Seen"}, "capture": {"Capture"}, "flame": {"Flame"}, "signals": {"Signals", "Tools"}, "doctor": {"Doctor"}, "version": {"Version"},
}

type object = map[string]any

var (
	asText = reflect.TypeFor[encoding.TextMarshaler]()
	asJSON = reflect.TypeFor[json.Marshaler]()
	// named are the types behind the names in defs.
	named = map[string]reflect.Type{}
)

// schemaOf is a type as JSON Schema; structs are described once, in defs.
func schemaOf(t reflect.Type, defs object) object {
	switch {
	case t.Kind() == reflect.Pointer: // below
	case t.Implements(asJSON) || reflect.PointerTo(t).Implements(asJSON):
		return object{}
	case t.Implements(asText) || reflect.PointerTo(t).Implements(asText):
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return object{"anyOf": []any{schemaOf(t.Elem(), defs), object{"type": "null"}}}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Interface:
		return object{}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": schemaOf(t.Elem(), defs)}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string"}
		}
		return object{"anyOf": []any{object{"type": "array", "items": schemaOf(t.Elem(), defs)}, object{"type": "null"}}}
	}
	name := nameOf(t)
	if defs[name] == nil {
		defs[name] = object{} // it may contain itself
		fields, required := object{}, []string{}
		addFields(t, fields, &required, defs)
		slices.Sort(required)
		defs[name] = object{"type": "object", "properties": fields, "required": required}
	}
	return object{"$ref": "#/$defs/" + name}
}

// nameOf is a type's name in defs: its own, with its package's in front where another has taken that.
func nameOf(t reflect.Type) string {
	name := t.Name()
	if other := named[name]; other != nil && other != t {
		name = path.Base(t.PkgPath()) + "." + name
	}
	named[name] = t
	return name
}

func addFields(t reflect.Type, fields object, required *[]string, defs object) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "":
			addFields(f.Type, fields, required, defs)
		default:
			if name == "" {
				name = f.Name
			}
			fields[name] = schemaOf(f.Type, defs)
			if !strings.Contains(options, "omit") {
				*required = append(*required, name)
			}
		}
	}
}

// schema is docs/schema.json.
func schema() object {
	defs, of := object{}, object{}
	clear(named)
	nouns := func(name string) int { return strings.Count(documents[name].PkgPath(), "internal/model") }
	for _, name := range slices.SortedFunc(maps.Keys(documents), func(a, b string) int { return cmp.Or(nouns(b)-nouns(a), cmp.Compare(a, b)) }) { // model's keep their names
		of[name] = object{"allOf": []any{schemaOf(documents[name], defs), object{"required": []string{"schema"}, "properties": object{"schema": object{"const": report.Schema}}}}}
	}
	return object{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "What Plimsoll prints with --json", "commands": printed, "documents": of, "$defs": defs}
}

// Every command with --json prints a document that is described, and none is described that nobody prints.
func TestEveryJSONIsDescribed(t *testing.T) {
	w, _, _ := testWorld()
	missing, unused := maps.Clone(printed), maps.Clone(documents)
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "plimsoll ")
		if strings.HasPrefix(name, "trace ") && name != "trace list" {
			name = "trace NAME"
		}
		if c.Flags().Lookup("json") != nil {
			if printed[name] == nil {
				t.Errorf("%s has --json, and no document in the schema", name)
			}
			for _, one := range printed[name] {
				if documents[one] == nil {
					t.Errorf("%s prints a %s, which is no document", name, one)
				}
				delete(unused, one)
			}
			delete(missing, name)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(w))
	if len(missing)+len(unused) > 0 {
		t.Errorf("commands without --json: %v; documents that nobody prints: %v", missing, unused)
	}
}

// plainNumbers are numbers whose unit stands elsewhere: beside them (a measure's, a signal's, a goal's), in the name of what they are in
// (quantiles), or nowhere, since they are averages of counts, factors and chances; and fields from before the rule, which stay.
var plainNumbers = regexp.MustCompile(`^(BillEntry\.plus_minus|Cost\.cpu_share_of_one_core|(Difference|Interval|Measure|Node|SignalChange|ToolPercentile)\.\w+|Limit\.missed|(KneeStep|LimitStep)\.generator_cpu|ProgramTime\.(at_once|cpus|processes|threads)|` +
	`Recording\.speed|Replies\.requests_per_connection|Saving\.at_most_throughput|SweepFinding\.chance|TLSLoad\.crypto_seconds_per_request|Target\.weight|TuneGoal\.value|Quantiles\.\w+)$`)

// A number that is not whole says its unit by the end of its name.
func TestNumbersSayTheirUnit(t *testing.T) {
	unit := regexp.MustCompile(`(^|_)(seconds|us|ms|bytes|share|ratio|rps|rate)$`)
	var bad []string
	for name, def := range schema()["$defs"].(object) {
		fields, _ := def.(object)["properties"].(object)
		for field, of := range fields {
			if of.(object)["type"] == "number" && !unit.MatchString(field) && !plainNumbers.MatchString(name+"."+field) {
				bad = append(bad, name+"."+field)
			}
		}
	}
	slices.Sort(bad)
	if len(bad) > 0 {
		t.Errorf("no unit: %s", strings.Join(bad, " "))
	}
}

func TestSchemaIsFresh(t *testing.T) {
	doc, err := json.MarshalIndent(schema(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	fresh(t, "schema.json", string(doc)+"\n")
}

// fits says where a value is not what a schema says, "" for nowhere. It knows the words
// that schema uses.
func fits(v any, s, defs object, at string) string {
	if ref, ok := s["$ref"].(string); ok {
		return fits(v, defs[strings.TrimPrefix(ref, "#/$defs/")].(object), defs, at)
	}
	for _, one := range list(s["allOf"]) {
		if fault := fits(v, one.(object), defs, at); fault != "" {
			return fault
		}
	}
	if any := list(s["anyOf"]); any != nil {
		fault := ""
		for _, one := range any {
			if fault = fits(v, one.(object), defs, at); fault == "" {
				return ""
			}
		}
		return fault
	}
	if want, ok := s["const"]; ok && fmt.Sprint(want) != fmt.Sprint(v) {
		return fmt.Sprintf("%s is %v, want %v", at, v, want)
	}
	if want, ok := s["type"].(string); ok && !isType(v, want) {
		return fmt.Sprintf("%s is %T, want %s", at, v, want)
	}
	for i, one := range list(v) {
		if items, ok := s["items"].(object); ok {
			if fault := fits(one, items, defs, fmt.Sprintf("%s[%d]", at, i)); fault != "" {
				return fault
			}
		}
	}
	fields, _ := v.(object)
	for _, name := range list(s["required"]) {
		if _, ok := fields[name.(string)]; !ok {
			return at + " has no " + name.(string)
		}
	}
	known, _ := s["properties"].(object)
	other, _ := s["additionalProperties"].(object)
	for name, value := range fields {
		of, ok := known[name].(object)
		if !ok {
			of = other
		}
		if of == nil && known != nil && name != "schema" && s["const"] == nil && s["type"] != nil {
			return at + " has " + name + ", which the schema does not know"
		}
		if of != nil {
			if fault := fits(value, of, defs, at+"."+name); fault != "" {
				return fault
			}
		}
	}
	return ""
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func isType(v any, want string) bool {
	switch v := v.(type) {
	case nil:
		return want == "null"
	case bool:
		return want == "boolean"
	case string:
		return want == "string"
	case float64:
		return want == "number" || want == "integer" && v == float64(int64(v))
	case []any:
		return want == "array"
	}
	return want == "object"
}

// written is docs/schema.json.
var written = sync.OnceValue(func() (s object) {
	raw, err := os.ReadFile(filepath.Join(docs, "schema.json"))
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		panic(err)
	}
	return s
})

// noise is a number as floating point leaves it: with more digits than are printed.
var noise = regexp.MustCompile(`[0-9]{10,}\.[0-9]|\.[0-9]*[1-9][0-9]{9,}`)

// misfit says why what a command printed is not the document of that name, "" where it is.
func misfit(name string, doc []byte) string {
	var v any
	s := written()
	of, known := s["documents"].(object)[name].(object)
	if err := json.Unmarshal(doc, &v); err != nil || !known {
		return fmt.Sprintf("%s: %v, known %v", name, err, known)
	}
	return fits(v, of, s["$defs"].(object), name)
}

// fitsDocument (fits NAME) holds what the last command printed against the schema.
func fitsDocument(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fits NAME")
	}
	doc := ts.ReadFile("stdout")
	if fault := misfit(args[0], []byte(doc)); fault != "" {
		ts.Fatalf("%s", fault)
	}
	for line := range strings.Lines(doc) {
		if _, value, number := strings.Cut(strings.TrimRight(line, ",\n"), "\": "); number && !strings.HasPrefix(value, "\"") && noise.MatchString(value) {
			ts.Fatalf("too many digits: %s", line)
		}
	}
}

// fitsSchema holds what a command printed against the document of that name.
func fitsSchema(t *testing.T, name string, doc []byte) {
	t.Helper()
	if fault := misfit(name, doc); fault != "" {
		t.Error(fault)
	}
}

// What takes a server or a lab is printed here of what it would be printed of there; lab run, lab test, lab tune and
// snapshot are held against the schema where they are tried.
func TestWhatLastsFitsTheSchema(t *testing.T) {
	w, out, talk := testWorld("serve", t.TempDir(), "--listen", "127.0.0.1:0", "--json")
	ended, end := context.WithCancel(t.Context())
	end() // it prints where it is, and ends
	if code := run(ended, w); code != exitOK {
		t.Errorf("serve: exit code %d: %s", code, talk)
	}
	fitsSchema(t, "Shelf", out.Bytes())
	x, err := theLab().Case("conntrack-full")
	ok(t, err)
	command, err := theLab().Command(x, nil)
	ok(t, err)
	for name, doc := range map[string]any{
		"CaseUp": newGame(x, command, true), "CaseDown": caseDown{"conntrack-full"}, "CaseWalk": caseWalk{[]lab.WalkStep{}},
		"CaseKilled": killed{Kills: []lab.KillResult{{Wrong: []string{}}}}, "CaseTuned": &lab.TuneResult{Case: "conntrack-full"},
	} {
		var printed bytes.Buffer
		ok(t, printJSON(&printed, doc))
		fitsSchema(t, name, printed.Bytes())
	}
}

// Those that are dear to make are held against the schema where they are tried: doctor, rules check and rules export.
func TestDocumentsFitTheSchema(t *testing.T) {
	s := written()
	for name, args := range map[string][]string{
		"Signals": {"signals", "--json"}, "Runs": {"runs", "list", "--json"}, "Version": {"version", "--json"}, "Tracers": {"trace", "list", "--json"},
		"Tools": {"signals", "--tools", "--json"}, "Cases": {"lab", "list", "--json"}, "Answers": {"lab", "list", "--truth", "--json"}, "CaseTruth": {"lab", "reveal", "conntrack-full", "--json"},
		"Rules": {"rules", "list", "--json"}, "Rule": {"rules", "show", "net.conntrack.table_full", "--json"},
		"WouldRemove": {"runs", "prune", "--keep", "1", "--dry-run", "--json"}, "Flame": {"flame", "../../internal/bill/testdata/fault-storm.pb.gz", "--json"},
	} {
		w, out, talk := testWorld(args...)
		w.env = func(name string) string { return map[string]string{"PLIMSOLL_RUNS": t.TempDir()}[name] }
		if code := run(t.Context(), w); code != exitOK {
			t.Errorf("%v: exit code %d: %s", args, code, talk.String())
		}
		fitsSchema(t, name, out.Bytes())
	}
	reports, err := filepath.Glob("../../internal/report/testdata/*.json")
	if err != nil || len(reports) == 0 {
		t.Fatalf("%v, %d reports", err, len(reports))
	}
	for _, path := range reports {
		doc, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fitsSchema(t, "Report", doc)
	}
	if fits(object{"schema": 1.0, "signals": "none"}, s["documents"].(object)["Signals"].(object), s["$defs"].(object), "x") == "" {
		t.Error("a string passes for a list")
	}
	if fault := fits(object{"signals": []any{}}, s["documents"].(object)["Signals"].(object), s["$defs"].(object), "x"); !bytes.Contains([]byte(fault), []byte("schema")) {
		t.Errorf("without a version: %q", fault)
	}
}
