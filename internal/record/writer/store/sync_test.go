package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/record/writer/store"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Each of a log's files is synced once it has ended, the oldest first, and who writes on does not wait for it.
func TestEachFileOfALogIsSynced(t *testing.T) {
	hold, lock := make(chan struct{}), sync.Mutex{}
	var synced []string
	store.WhenSynced(t, func(name string) {
		<-hold
		lock.Lock()
		defer lock.Unlock()
		synced = append(synced, filepath.Base(name))
	})
	l, err := store.NewLog(filepath.Join(t.TempDir(), "wal"))
	check(t, err)
	for i := range 4 {
		check(t, l.Add([]byte(fmt.Sprint("record ", i))))
		if i < 3 {
			check(t, l.Next()) // would hang here
		}
	}
	close(hold)
	check(t, l.Close())
	if want := []string{"00000000", "00000001", "00000002", "00000003"}; !slices.Equal(synced, want) {
		t.Errorf("synced are %q, want %q", synced, want)
	}
}

// A power cut must not leave neither log nor blocks: the names in a block, and those of the blocks, are synced while the log is there.
func TestBlocksAreSyncedBeforeTheLogGoes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	series := filepath.Join(dir, record.SeriesDir)
	var synced []string
	store.WhenSynced(t, func(name string) {
		if _, err := os.Stat(filepath.Join(series, record.WALDir, "00000000")); err != nil {
			t.Errorf("when %s is synced the log is gone: %v", name, err)
		}
		names, err := os.ReadDir(name)
		if err != nil {
			return // a file
		}
		for _, e := range names {
			if _, err := os.Stat(filepath.Join(name, e.Name(), record.BlockMetaFile)); err == nil || e.Name() == record.BlockMetaFile {
				synced = append(synced, filepath.Base(name)+" with "+e.Name())
			}
		}
	})
	w, err := writer.Create(dir, model.Run{Version: "test", Started: 1000, Plan: model.Plan{Mode: "run", Interval: 1000}})
	check(t, err)
	w.Sample("h", 2000, &model.Signal{Name: "g", Kind: model.Gauge}, 1)
	check(t, w.Close())
	blocks, err := filepath.Glob(filepath.Join(series, "*", record.BlockMetaFile))
	check(t, err)
	if len(blocks) != 1 {
		t.Fatalf("blocks %q", blocks)
	}
	block := filepath.Base(filepath.Dir(blocks[0]))
	if want := []string{block + " with " + record.BlockMetaFile, record.SeriesDir + " with " + block}; !slices.Equal(synced, want) {
		t.Errorf("synced are %q, want %q", synced, want)
	}
}
