package symbol

import (
	"debug/elf"
	"path/filepath"
	"strings"
	"testing"
)

// Of a stripped libruby what lies among the exported functions of its collector has their
// name, and nothing else: no allocation, no write barrier, no function that has a name.
func TestFunctionsOfRubysCollector(t *testing.T) {
	paths, _ := filepath.Glob("/usr/lib/*/libruby-*.so.*.*.*")
	if len(paths) == 0 {
		t.Skip("no ruby")
	}
	f, err := elf.Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table := rubyTable(f, readBounds(f))
	if len(table.list) < 20 {
		t.Fatalf("%d functions", len(table.list))
	}
	exported, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range exported {
		name := table.find(s.Value)
		if s.Name == "rb_gc_enable" && table.find(s.Value+s.Size+16) != RubyCollector {
			t.Errorf("what follows %s is %q", s.Name, table.find(s.Value+s.Size+16))
		}
		if s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC && name != "" {
			t.Errorf("%s is named %s", s.Name, name)
		}
		if strings.Contains(s.Name, "newobj") && table.find(s.Value+s.Size+16) != "" {
			t.Errorf("what follows %s is the collector's", s.Name)
		}
	}
}
