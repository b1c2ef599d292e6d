package bucket

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"plimsoll/internal/record"
)

// server is an S3 server in this process; before sees each request first, and answers it where it returns true.
func server(t *testing.T, before func(http.ResponseWriter, *http.Request) bool) (*Bucket, gofakes3.Backend) {
	t.Helper()
	kept := s3mem.New()
	if err := kept.CreateBucket("runs"); err != nil {
		t.Fatal(err)
	}
	real := gofakes3.New(kept).Server()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !before(w, r) {
			real.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return open(t, strings.TrimPrefix(s.URL, "http://")), kept
}

func none(http.ResponseWriter, *http.Request) bool { return false }

// open is the bucket at an address, as a file has it.
func open(t *testing.T, address string) *Bucket {
	t.Helper()
	file := filepath.Join(t.TempDir(), "s3.yml")
	text := fmt.Sprintf("type: S3\nconfig: {bucket: runs, endpoint: %q, access_key: who, secret_key: word, insecure: true}\nprefix: plimsoll\n", address)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// aRun makes a directory with files of all sizes.
func aRun(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "20261127T020000Z-1a2b")
	manifest(t, dir, true)
	for name, size := range map[string]int{"events.jsonl": 0, "series/01ABC/index": 5000, "series/01ABC/chunks/000001": 17 << 20} {
		data := make([]byte, size)
		_, _ = rand.Read(data) // it never fails
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700), os.WriteFile(filepath.Join(dir, name), data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// manifest writes that of a run that is closed, or open.
func manifest(t *testing.T, dir string, closed bool) {
	t.Helper()
	text := fmt.Sprintf(`{"format": %d, "closed": %t}`, record.Format, closed)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, record.ManifestFile), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// upload uploads a run, and says where.
func upload(t *testing.T, b *Bucket, dir string) (where string) {
	t.Helper()
	where, err := b.Upload(t.Context(), "web1", dir)
	if err != nil {
		t.Fatal(err)
	}
	return where
}

// fetch fetches what is at an address.
func fetch(b *Bucket, address, dir string) error {
	at, err := ParseAddress(address)
	if err != nil {
		return err
	}
	return b.Fetch(context.Background(), at, dir)
}

func same(t *testing.T, want, got string) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(want, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		n++
		rel, _ := filepath.Rel(want, name)
		a, errA := os.ReadFile(name)
		b, errB := os.ReadFile(filepath.Join(got, rel))
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs: %d bytes, and %d", rel, len(a), len(b))
		}
		return errors.Join(errA, errB)
	})
	if err != nil || n != 4 {
		t.Errorf("%d files, %v; want 4", n, err)
	}
}

const address = "s3://runs/plimsoll/web1/20261127T020000Z-1a2b"

// A run comes back byte for byte; what is there as a whole is not put there again.
func TestThereAndBack(t *testing.T) {
	puts := 0
	b, _ := server(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			puts++
		}
		return false
	})
	dir, back := aRun(t), t.TempDir()
	if where := upload(t, b, dir); where != address {
		t.Errorf("it is at %q, want %s", where, address)
	}
	before := puts
	if where := upload(t, b, dir); where != "" || puts != before {
		t.Errorf("the second time: at %q, and %d are put there anew", where, puts-before)
	}
	if err := fetch(b, address+"/", back); err != nil {
		t.Fatal(err)
	}
	same(t, dir, back)
}

// A run that is still being made, or that a killed watch left, is not put there; once it is closed it is.
func TestOpenRun(t *testing.T) {
	asked := 0
	b, _ := server(t, func(http.ResponseWriter, *http.Request) bool { asked++; return false })
	dir, back := aRun(t), t.TempDir()
	manifest(t, dir, false)
	if _, err := b.Upload(t.Context(), "web1", dir); err == nil || !strings.Contains(err.Error(), "closed") || asked > 0 {
		t.Errorf("%v, after %d requests", err, asked)
	}
	manifest(t, dir, true)
	upload(t, b, dir)
	if err := fetch(b, address, back); err != nil {
		t.Fatal(err)
	}
	same(t, dir, back)
}

// What was cut off is no run, and is one after the next try.
func TestFullServer(t *testing.T) {
	full := true
	b, _ := server(t, func(w http.ResponseWriter, r *http.Request) bool {
		if full && r.Method == http.MethodPut && strings.Contains(r.URL.Path, "index") {
			w.WriteHeader(http.StatusInsufficientStorage)
			fmt.Fprint(w, "<Error><Code>XMinioStorageFull</Code><Message>no room is left</Message></Error>")
			return true
		}
		return false
	})
	dir, back := aRun(t), t.TempDir()
	if _, err := b.Upload(t.Context(), "web1", dir); err == nil || !strings.Contains(err.Error(), "no room is left") {
		t.Errorf("the error is %v", err)
	}
	if err := fetch(b, address, back); err == nil || !strings.Contains(err.Error(), "uploaded as a whole") {
		t.Errorf("half a run: %v", err)
	}
	full = false
	upload(t, b, dir)
	if err := fetch(b, address, back); err != nil {
		t.Fatal(err)
	}
	same(t, dir, back)
}

// One that hangs is given up, whether it never answers or answers no more.
func TestServerThatHangs(t *testing.T) {
	for method, patience := range map[string]time.Duration{http.MethodHead: time.Millisecond, http.MethodPut: time.Second} {
		stop := make(chan bool)
		b, _ := server(t, func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == method {
				<-stop
			}
			return false
		})
		b.patience = patience
		if _, err := b.Upload(t.Context(), "web1", aRun(t)); err == nil || !strings.Contains(err.Error(), "nothing moved for") {
			t.Errorf("%s: the error is %v", method, err)
		}
		close(stop)
	}
}

func TestServerThatIsDown(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, gone.Addr().String())
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Upload(t.Context(), "web1", aRun(t)); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("the error is %v", err)
	}
}

// Names that lead elsewhere are no files of a run.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{"../out", "a/../../out", "a//b", "/etc/out", "."} {
		b, _ := server(t, func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.RawQuery, "list-type") {
				return false
			}
			fmt.Fprintf(w, `<ListBucketResult><Contents><Key>plimsoll/web1/x/run.json</Key><Size>0</Size></Contents><Contents><Key>plimsoll/web1/x/%s</Key><Size>0</Size></Contents></ListBucketResult>`, name)
			return true
		})
		if err := fetch(b, "s3://runs/plimsoll/web1/x", t.TempDir()); err == nil || !strings.Contains(err.Error(), "no file of a run") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// What other tools make of folders is no file, and there may be only so many of them as well.
func TestFolders(t *testing.T) {
	b, kept := server(t, none)
	dir, back := aRun(t), t.TempDir()
	upload(t, b, dir)
	for _, key := range []string{"", "series/"} {
		if _, err := kept.PutObject("runs", "plimsoll/web1/20261127T020000Z-1a2b/"+key, nil, strings.NewReader(""), 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := fetch(b, address, back); err != nil {
		t.Fatal(err)
	}
	same(t, dir, back)
}

// What the server does not do is told from what cannot be written here.
func TestWhoseError(t *testing.T) {
	b, _ := server(t, none)
	upload(t, b, aRun(t))
	back := t.TempDir()
	if err := os.Mkdir(filepath.Join(back, "events.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := fetch(b, address, back); err == nil || errors.As(err, &ServerError{}) {
		t.Errorf("a file that cannot be written is the server's: %v", err)
	}
	if err := fetch(b, address+"x", t.TempDir()); !errors.As(err, &ServerError{}) {
		t.Errorf("a run that is not there is not the server's: %v", err)
	}
}

func TestRoom(t *testing.T) {
	if err := hasRoom(t.TempDir(), 1<<62); err == nil || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("the error is %v", err)
	}
	if err := hasRoom(t.TempDir(), 1); err != nil {
		t.Error(err)
	}
}

// A list without an end, or a size that is none of a run's, is an error.
func TestHostileLists(t *testing.T) {
	for size, end := range map[string]string{"5000000000": "", "0": "", "00": "/"} {
		b, _ := server(t, func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.RawQuery, "list-type") {
				return false
			}
			fmt.Fprint(w, `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>more</NextContinuationToken>`)
			for n := range 1000 {
				fmt.Fprintf(w, `<Contents><Key>plimsoll/web1/x/f%d%s</Key><Size>%s</Size></Contents>`, n, end, size)
			}
			fmt.Fprint(w, `</ListBucketResult>`)
			return true
		})
		if err := fetch(b, "s3://runs/plimsoll/web1/x", t.TempDir()); err == nil || !strings.Contains(err.Error(), "a run has less") {
			t.Errorf("%v", err)
		}
	}
}

func TestConfigs(t *testing.T) {
	for text, want := range map[string]string{
		"type: GCS": "want S3",
		"type: S3\nconfig: {bucket: b, endpoint: e, access_key: a}":                          "secret_key",
		"type: S3\nconfig: {bucket: b, endpoint: 'http://e/', access_key: a, secret_key: s}": "HOST:PORT",
		"type: S3\nconfig: {bucket: b, endpoint: e, access_key: a, secret_key: s, sse: x}":   "and nothing else",
		"type: S3\nconfig: {secret}":           "and nothing else",
		"type: S3\nconfig: {insecure: secret}": "line 2: ",
		"type: S3\nsecret: x":                  "line 2: ",
		"*secret":                              "and nothing else",
		"type: secret":                         "want S3",
		"type: S3\nconfig: {bucket: b, endpoint: 'secret:x', access_key: a, secret_key: s}":      "HOST:PORT",
		"type: S3\nconfig: {bucket: b, endpoint: e, access_key: a, secret_key: s}\nprefix: ../x": "names",
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", text, err, want)
		} else if strings.Contains(strings.ReplaceAll(err.Error(), "secret_key", ""), "secret") {
			t.Errorf("it is said: %v", err)
		}
	}
	open := filepath.Join(t.TempDir(), "open.yml")
	if err := os.WriteFile(open, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(open); err == nil || !strings.Contains(err.Error(), "chmod") {
		t.Errorf("a file that all may read: %v", err)
	}
	for _, address := range []string{"s3://", "s3://runs", "s3://runs/", "s3://runs/../x", "s3://runs/.", "s3://a b/x", "http://x/y"} {
		if _, err := ParseAddress(address); err == nil {
			t.Errorf("%s is taken for an address", address)
		}
	}
}
