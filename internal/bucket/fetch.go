package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/s3utils"
	"golang.org/x/sys/unix"

	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
)

// The bounds of a run that is fetched, whoever put it there.
const (
	maxObjects = 10_000
	maxBytes   = 4 << 30
)

// Address is where a run is in object storage.
type Address struct{ bucket, key string }

// ParseAddress reads one like s3://BUCKET/KEY.
func ParseAddress(text string) (Address, error) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(text, Scheme), "/")
	key = strings.TrimSuffix(key, "/")
	if !strings.HasPrefix(text, Scheme) || s3utils.CheckValidBucketName(bucket) != nil || !fs.ValidPath(key) || key == "." {
		return Address{}, fmt.Errorf("%q: want %sBUCKET/RUN", text, Scheme)
	}
	return Address{bucket, key}, nil
}

// Fetch writes the run at an address into an empty directory that is ours alone.
func (b *Bucket) Fetch(ctx context.Context, at Address, dir string) error {
	from, key := *b, at.key
	from.name = at.bucket
	list, err := from.list(ctx, key+"/")
	if err != nil {
		return err
	}
	size := int64(0)
	for _, o := range list {
		size += o.Size
	}
	if err := hasRoom(dir, size); err != nil {
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
	left, seen, whole := int64(maxBytes), 0, false
	for o := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: below, Recursive: true}) {
		_, _ = moved.Read(nil)
		name := strings.TrimPrefix(o.Key, below)
		left -= max(o.Size, 0)
		seen++
		switch {
		case o.Err != nil:
			return nil, b.failed("list "+below, because(ctx, o.Err))
		case seen > maxObjects || left < 0:
			return nil, b.failed("list "+below, fmt.Errorf("there are more than %d objects or %d bytes; a run has less", maxObjects, int64(maxBytes)))
		case o.Size == 0 && strings.HasSuffix(o.Key, "/"):
			continue // a folder, as other tools make them
		case !filepath.IsLocal(name) || path.Clean(name) != name || name == ".":
			return nil, b.failed("list "+below, fmt.Errorf("there is %q, which is no file of a run", o.Key))
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
		if file := (*fs.PathError)(nil); errors.As(err, &file) {
			return err // it is written here, and the server has no part in it
		}
		return b.failed("get "+o.Key, because(ctx, err))
	})
}

// hasRoom says whether so many bytes can be written below a directory.
func hasRoom(dir string, size int64) error {
	var free unix.Statfs_t
	if err := unix.Statfs(dir, &free); err != nil {
		return fmt.Errorf("look for room in %s: %w", dir, err)
	}
	if left := float64(free.Bavail) * float64(free.Bsize); left < float64(size) {
		return fmt.Errorf("%s: the run has %d bytes, and there is room for %.0f; name a directory with more of it in TMPDIR", filepath.Dir(dir), size, left)
	}
	return nil
}

// tells tells of what moves as it is written.
type tells struct{ moved io.Reader }

func (t tells) Write(some []byte) (int, error) { return t.moved.Read(some) }
