// Package bucket keeps runs in object storage of the S3 kind. Each file of a run's directory is an object of its own; the manifest is
// put there last, so that what has none is no run, but an upload that is under way or was cut off.
package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"go.yaml.in/yaml/v3"

	"plimsoll/internal/input"
	"plimsoll/internal/lazy"
	"plimsoll/internal/record"
)

// Scheme is what the address of a run in a bucket begins with.
const Scheme = "s3://"

const (
	// maxConfig is how long a configuration may be, in bytes.
	maxConfig = 64 << 10
	// patience is for how long nothing may move before a server is given up.
	patience = time.Minute
	// connectTime is for how long a connection is waited for.
	connectTime = 10 * time.Second
	// maxList is how much of what is no object of ours is read of one answer, in bytes.
	maxList = 8 << 20
)

// config is a configuration: that of Thanos' object storage, so far as we have a use for it.
type config struct {
	Type   string `yaml:"type"`
	Config struct {
		Bucket    string `yaml:"bucket"`
		Endpoint  string `yaml:"endpoint"`
		Region    string `yaml:"region"`
		AccessKey string `yaml:"access_key"`
		SecretKey string `yaml:"secret_key"`
		Insecure  bool   `yaml:"insecure"`
	} `yaml:"config"`
	Prefix string `yaml:"prefix"`
}

// Bucket is one, and where in it runs are put.
type Bucket struct {
	client       *minio.Client
	name, prefix string
	patience     time.Duration
}

// Open reads the configuration in a file, which not everybody may read. Nobody is asked anything yet.
func Open(file string) (*Bucket, error) {
	text, err := input.ReadSecret(file, maxConfig)
	if err != nil {
		return nil, err
	}
	b, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return b, nil
}

// lineNumber is where an error of YAML is.
var lineNumber = lazy.Regexp(`line [0-9]+: `)

// lineOf is the first line of which an error tells. The rest of it quotes the file, in which there may be a key in a wrong place.
func lineOf(err error) string { return lineNumber().FindString(err.Error()) }

// parse reads a configuration. No error says anything that stands in it.
func parse(text []byte) (*Bucket, error) {
	var c config
	in := yaml.NewDecoder(bytes.NewReader(text))
	in.KnownFields(true)
	if err := in.Decode(&c); err != nil {
		return nil, fmt.Errorf("%swant type: S3, config (bucket, endpoint, region, access_key, secret_key and insecure, of which the last is true or false) and prefix, and nothing else, as Thanos has them", lineOf(err))
	}
	o := c.Config
	switch {
	case c.Type != "S3":
		return nil, errors.New("type: want S3, and no other is known")
	case o.Bucket == "" || o.Endpoint == "" || o.AccessKey == "" || o.SecretKey == "":
		return nil, errors.New("config: want bucket, endpoint, access_key and secret_key")
	case strings.Contains(o.Endpoint, "/"):
		return nil, errors.New("config: endpoint: want HOST or HOST:PORT; it is spoken to over TLS, unless insecure is true")
	case c.Prefix != "" && !filepath.IsLocal(c.Prefix):
		return nil, errors.New("prefix: want names with / between")
	}
	client, err := minio.New(o.Endpoint, &minio.Options{Creds: credentials.NewStaticV4(o.AccessKey, o.SecretKey, ""), Secure: !o.Insecure,
		Region: o.Region, Transport: bounded{transport()}, MaxRetries: 1}) // whoever calls tries again, and knows when
	if err != nil {
		return nil, errors.New("config: want a bucket's name, an endpoint (HOST or HOST:PORT) and keys as the server gave them")
	}
	return &Bucket{client: client, name: o.Bucket, prefix: c.Prefix, patience: patience}, nil
}

func transport() *http.Transport {
	dialer := net.Dialer{Timeout: connectTime}
	return &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: connectTime,
		ResponseHeaderTimeout: patience, MaxResponseHeaderBytes: 64 << 10, DisableCompression: true, IdleConnTimeout: patience}
}

// bounded lets a server say only so much, but for objects, whose sizes are known before: lists are held whole.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(req)
	if err == nil && (req.Method != http.MethodGet || req.URL.RawQuery != "") {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxList), res.Body}
	}
	return res, err
}

// Upload puts the run in a directory there, under a machine's name and the directory's, and returns its address. What was put there as a
// whole is left alone, and has none. A run that is not closed is refused: what is there as a whole would never get the rest.
func (b *Bucket) Upload(ctx context.Context, machine, dir string) (address string, err error) {
	meta, err := record.Manifest(dir) // before the list of files, which is whole since
	if err != nil {
		return "", err
	}
	if !meta.Closed {
		return "", fmt.Errorf("%s: the run is still being made, or was cut off; want one that is closed", dir)
	}
	key := path.Join(b.prefix, machine, filepath.Base(dir))
	if there, err := b.has(ctx, key+"/"+record.ManifestFile); there || err != nil {
		return "", err
	}
	held, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer held.Close()
	files, err := files(held)
	if err != nil {
		return "", err
	}
	for _, name := range append(files, record.ManifestFile) {
		if err := b.put(ctx, held, name, key+"/"+name); err != nil {
			return "", err
		}
	}
	return Scheme + b.name + "/" + key, nil
}

// has says whether there is an object.
func (b *Bucket) has(ctx context.Context, key string) (bool, error) {
	ctx, _, end := b.watched(ctx)
	defer end()
	_, err := b.client.StatObject(ctx, b.name, key, minio.StatObjectOptions{})
	if err != nil && minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return false, nil
	}
	return err == nil, b.failed("look for "+key, because(ctx, err))
}

// files lists what is in a run's directory, but for the manifest.
func files(held *os.Root) (list []string, err error) {
	err = fs.WalkDir(held.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && name != record.ManifestFile {
			list = append(list, name)
		}
		return err
	})
	return list, err
}

// put puts one file there.
func (b *Bucket) put(ctx context.Context, held *os.Root, name, key string) error {
	f, err := held.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	ctx, moved, end := b.watched(ctx)
	defer end()
	// In one part, so that what is cut off leaves no parts behind, which are paid for and in no list. Without a byte there is no stream
	// to sign, and one of an unknown length would be sent.
	_, err = b.client.PutObject(ctx, b.name, key, f, info.Size(),
		minio.PutObjectOptions{DisableMultipart: true, Progress: moved, DisableContentSha256: info.Size() == 0})
	return b.failed("put "+key, because(ctx, err))
}

// watched is a context that ends when nothing has moved for a while; who moves something reads from moved.
func (b *Bucket) watched(ctx context.Context) (_ context.Context, moved io.Reader, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(b.patience, func() { cancel(fmt.Errorf("nothing moved for %v", b.patience)) })
	return ctx, progress{timer, b.patience}, func() { timer.Stop(); cancel(nil) }
}

// progress is told of what moves by being read from.
type progress struct {
	timer *time.Timer
	every time.Duration
}

func (p progress) Read(some []byte) (int, error) {
	p.timer.Reset(p.every)
	return len(some), nil
}

// because is why a context ended, where that is why something failed.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// ServerError says that a server could not be reached, or did not do or have what it was asked for.
type ServerError struct{ Err error }

func (e ServerError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e ServerError) Unwrap() error { return e.Err }

// failed says what failed, on which server. An error of the HTTP client says the whole address again.
func (b *Bucket) failed(what string, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if err == nil {
		return nil
	}
	return ServerError{fmt.Errorf("%s: %s in bucket %s: %w", b.client.EndpointURL().Host, what, b.name, err)}
}
