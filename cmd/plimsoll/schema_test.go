package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/flame"
	"plimsoll/internal/model"
	"plimsoll/internal/report"
)

// documents are what commands print with --json, by the names that docs/schema.json gives them.
var documents = map[string]reflect.Type{
	"Report": reflect.TypeFor[model.Report](), "Fleet": reflect.TypeFor[model.Fleet](), "Comparisons": reflect.TypeFor[comparisons](), "Signals": reflect.TypeFor[signalList](),
	"Tracers": reflect.TypeFor[tracerList](), "Doctor": reflect.TypeFor[checkup](), "Tuning": reflect.TypeFor[model.Tuning](),
	"Sweep": reflect.TypeFor[model.Sweep](), "Limit": reflect.TypeFor[limitDocument](), "Runs": reflect.TypeFor[runList](), "Snapshot": reflect.TypeFor[snapshotDocument](), "Version": reflect.TypeFor[versionDocument](),
	"Load": reflect.TypeFor[loadDocument](), "Changes": reflect.TypeFor[changesDocument](), "Undone": reflect.TypeFor[undoneDocument](), "Run": reflect.TypeFor[keptRun](),
	"Removed": reflect.TypeFor[removedDocument](), "WouldRemove": reflect.TypeFor[wouldRemove](), "Tools": reflect.TypeFor[toolList](), "Cases": reflect.TypeFor[caseList](),
	"RulesChecked": reflect.TypeFor[rulesChecked](), "RulesTested": reflect.TypeFor[rulesTested](), "Flame": reflect.TypeFor[flame.Tree](),
}

type object = map[string]any

// schemaOf is a type as JSON Schema; structs are described once, in defs.
func schemaOf(t reflect.Type, defs object) object {
	switch t.Kind() {
	case reflect.Pointer:
		return object{"anyOf": []any{schemaOf(t.Elem(), defs), object{"type": "null"}}}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer"}
	case reflect.Float64:
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
	name := t.Name()
	if defs[name] == nil {
		defs[name] = object{} // it may contain itself
		fields, required := object{}, []string{}
		addFields(t, fields, &required, defs)
		slices.Sort(required)
		defs[name] = object{"type": "object", "properties": fields, "required": required}
	}
	return object{"$ref": "#/$defs/" + name}
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
	for name, t := range documents {
		of[name] = object{"allOf": []any{schemaOf(t, defs), object{"required": []string{"schema"}, "properties": object{"schema": object{"const": report.Schema}}}}}
	}
	return object{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "What Plimsoll prints with --json", "documents": of, "$defs": defs}
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

func TestDocumentsFitTheSchema(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(docs, "schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s object
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	check := func(name string, doc []byte) {
		t.Helper()
		var v any
		if err := json.Unmarshal(doc, &v); err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if fault := fits(v, s["documents"].(object)[name].(object), s["$defs"].(object), name); fault != "" {
			t.Error(fault)
		}
	}
	for name, args := range map[string][]string{
		"Signals": {"signals", "--json"}, "Runs": {"runs", "list", "--json"}, "Version": {"version", "--json"}, "Tracers": {"trace", "list", "--json"}, "Doctor": {"doctor", "--json"},
		"Tools": {"signals", "--tools", "--json"}, "Cases": {"lab", "list", "--json"}, "RulesChecked": {"rules", "check", "--json"},
		"WouldRemove": {"runs", "prune", "--keep", "1", "--dry-run", "--json"}, "Flame": {"flame", "../../internal/bill/testdata/fault-storm.pb.gz", "--json"},
	} {
		w, out, talk := testWorld(args...)
		w.env = func(name string) string { return map[string]string{"PLIMSOLL_RUNS": t.TempDir()}[name] }
		if code := run(t.Context(), w); code != exitOK {
			t.Errorf("%v: exit code %d: %s", args, code, talk.String())
		}
		check(name, out.Bytes())
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
		check("Report", doc)
	}
	if fits(object{"schema": 1.0, "signals": "none"}, s["documents"].(object)["Signals"].(object), s["$defs"].(object), "x") == "" {
		t.Error("a string passes for a list")
	}
	if fault := fits(object{"signals": []any{}}, s["documents"].(object)["Signals"].(object), s["$defs"].(object), "x"); !bytes.Contains([]byte(fault), []byte("schema")) {
		t.Errorf("without a version: %q", fault)
	}
}
