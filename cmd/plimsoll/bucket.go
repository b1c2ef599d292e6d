package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/bucket"
)

// bucketFlag says where runs are kept in object storage.
type bucketFlag struct {
	file   string
	opened *bucket.Bucket // nil where nobody names any
}

func (f *bucketFlag) add(c *cobra.Command, help string) {
	c.Flags().StringVar(&f.file, "bucket", "", help)
}

// check reads the file that was named.
func (f *bucketFlag) check() (err error) {
	if f.file == "" {
		return nil
	}
	f.opened, err = bucket.Open(f.file)
	if err != nil {
		code := exitUsage
		if isAny(err, fs.ErrNotExist, fs.ErrPermission) {
			code = exitMissing
		}
		return fail(code, fmt.Errorf("--bucket: %w", err))
	}
	return nil
}

// fetched fetches those of the names that are addresses in a bucket, into directories that done removes. The others are left as they are.
func (f *bucketFlag) fetched(ctx context.Context, command string, names []string) (dirs []string, done func() error, err error) {
	done = func() error { return nil }
	top := ""
	for n, name := range names {
		if !strings.HasPrefix(name, bucket.Scheme) {
			dirs = append(dirs, name)
			continue
		}
		if f.opened == nil {
			return nil, done, usage(command, "%s: want --bucket FILE, which says by which server and keys", name)
		}
		if top == "" {
			if top, err = os.MkdirTemp("", "plimsoll-bucket-"); err != nil {
				return nil, done, err
			}
			done = func() error { return os.RemoveAll(top) }
		}
		dir := filepath.Join(top, fmt.Sprint(n), filepath.Base(name))
		if err := errors.Join(os.MkdirAll(dir, 0o700), ctx.Err()); err != nil {
			return nil, done, err
		}
		if err := f.opened.Fetch(ctx, name, dir); err != nil {
			return nil, done, fail(exitUnreachable, err)
		}
		dirs = append(dirs, dir)
	}
	return dirs, done, nil
}
