package bucket

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7"

	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
)

// The bounds of a run that is fetched, whoever put it there.
const (
	maxObjects = 10_000
	maxBytes   = 4 << 30
)

// Fetch writes the run at an address like s3://BUCKET/KEY into an empty directory that is ours alone.
func (b *Bucket) Fetch(ctx context.Context, address, dir string) error {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(address, Scheme), "/")
	key = strings.TrimSuffix(key, "/")
	if !strings.HasPrefix(address, Scheme) || bucket == "" || key == "" {
		return fmt.Errorf("%q: want %sBUCKET/RUN", address, Scheme)
	}
	from := *b
	from.name = bucket
	list, err := from.list(ctx, key+"/")
	if err != nil {
		return err
	}
	held, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer held.Close()
	for _, o := range list {
		name := strings.TrimPrefix(o.Key, key+"/") // a local one
		if err := held.MkdirAll(path.Dir(name), 0o700); err != nil {
			return err
		}
		if err := from.get(ctx, o, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// list lists the objects of a run.
func (b *Bucket) list(ctx context.Context, below string) (list []minio.ObjectInfo, err error) {
	ctx, moved, end := b.watched(ctx)
	defer end()
	left, whole := int64(maxBytes), false
	for o := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: below, Recursive: true}) {
		_, _ = moved.Read(nil)
		name := strings.TrimPrefix(o.Key, below)
		left -= max(o.Size, 0)
		switch {
		case o.Err != nil:
			return nil, b.failed("list "+below, because(ctx, o.Err))
		case !filepath.IsLocal(name) || path.Clean(name) != name || name == ".":
			return nil, b.failed("list "+below, fmt.Errorf("there is %q, which is no file of a run", o.Key))
		case len(list) == maxObjects || left < 0:
			return nil, b.failed("list "+below, fmt.Errorf("there are more than %d objects or %d bytes; a run has less", maxObjects, int64(maxBytes)))
		}
		whole = whole || name == record.ManifestFile
		list = append(list, o)
	}
	if !whole {
		return nil, b.failed("list "+below, fmt.Errorf("there is no %s; want the address of a run that was uploaded as a whole", record.ManifestFile))
	}
	return list, nil
}

// get writes one object into a file.
func (b *Bucket) get(ctx context.Context, o minio.ObjectInfo, file string) error {
	ctx, moved, end := b.watched(ctx)
	defer end()
	return writer.Stream(file, func(out io.Writer) error {
		in, err := b.client.GetObject(ctx, b.name, o.Key, minio.GetObjectOptions{})
		if err != nil {
			return b.failed("get "+o.Key, err)
		}
		defer in.Close()
		n, err := io.Copy(out, io.TeeReader(io.LimitReader(in, o.Size+1), tells{moved}))
		if err == nil && n != o.Size {
			err = fmt.Errorf("%d bytes came, and its list says %d", n, o.Size)
		}
		return b.failed("get "+o.Key, because(ctx, err))
	})
}

// tells tells of what moves as it is written.
type tells struct{ moved io.Reader }

func (t tells) Write(some []byte) (int, error) { return t.moved.Read(some) }
