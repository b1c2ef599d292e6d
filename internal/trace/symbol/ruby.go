package symbol

import (
	"cmp"
	"debug/elf"
	"slices"
	"sort"
	"strings"

	"plimsoll/internal/lazy"
)

// Ruby's collector is static functions of one source file, gc.c, and a stripped libruby has no
// names for them. Compilers keep the functions of a file together, so what lies between two exported ones
// of that file is of it, too. Those that allocate, and the write barriers, are left out with their neighbours.

// RubyCollector is the name of all functions of Ruby's collector that have none of their own.
const RubyCollector = "ruby:{gc.c}"

var ofRubyCollector = lazy.Regexp(`^(rb_(gc|objspace|mark|during_gc|obj_info|imemo_name|obj_id|obj_memsize_of|memory_id|define_finalizer|undefine_finalizer)(_|$)|ruby_(sized_)?xfree$|ruby_malloc_size_overflow$)`)

// rubyTable makes symbols of the functions without a name in Ruby's gc.c.
func rubyTable(f *elf.File, of bounds) (table symbols) {
	exported, err := f.DynamicSymbols()
	if err != nil || !slices.ContainsFunc(exported, func(s elf.Symbol) bool { return s.Name == "rb_gc_start" && s.Section != elf.SHN_UNDEF }) {
		return table
	}
	exported = slices.DeleteFunc(exported, func(s elf.Symbol) bool {
		return s.Section == elf.SHN_UNDEF || elf.ST_TYPE(s.Info) != elf.STT_FUNC
	})
	slices.SortStableFunc(exported, func(a, b elf.Symbol) int { return cmp.Compare(a.Value, b.Value) })
	collects := func(s elf.Symbol) bool {
		return ofRubyCollector().MatchString(s.Name) && !strings.HasPrefix(s.Name, "rb_gc_writebarrier")
	}
	for _, start := range of {
		next := sort.Search(len(exported), func(i int) bool { return exported[i].Value > start })
		if next == 0 || next == len(exported) || exported[next-1].Value == start {
			continue
		}
		if collects(exported[next-1]) && collects(exported[next]) {
			table.list = append(table.list, entry{start, of.size(start), 0})
		}
	}
	table.names = strings.NewReader(RubyCollector + "\x00")
	return table
}
