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
func (f *bucketFlag) check(c *cobra.Command) (err error) {
	if !c.Flags().Changed("bucket") {
		return nil
	}
	if f.file == "" { // as of a variable that is not set: nothing would be put there, and nobody would know
		return usage(c.CommandPath(), "--bucket is empty; want the name of a file that says which object storage")
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

// addresses reads those of the names that are addresses in a bucket, by their place.
func (f *bucketFlag) addresses(command string, names []string) (map[int]bucket.Address, error) {
	list := map[int]bucket.Address{}
	for n, name := range names {
		if !strings.HasPrefix(name, bucket.Scheme) {
			continue
		}
		at, err := bucket.ParseAddress(name)
		if err != nil {
			return nil, usage(command, "%v", err)
		}
		if f.opened == nil {
			return nil, usage(command, "%s: want --bucket FILE, which says by which server and keys", name)
		}
		list[n] = at
	}
	return list, nil
}

// fetched fetches those of the names that are addresses in a bucket, into directories that done removes, and whose addresses
// from has. The others are left as they are.
func (f *bucketFlag) fetched(ctx context.Context, command string, names []string) (dirs []string, from map[string]string, done func() error, err error) {
	done = func() error { return nil }
	list, err := f.addresses(command, names)
	if err != nil || len(list) == 0 {
		return names, nil, done, err
	}
	top, err := os.MkdirTemp("", "plimsoll-bucket-")
	if err != nil {
		return nil, nil, done, fail(exitRunDir, err)
	}
	done, from = func() error { return os.RemoveAll(top) }, map[string]string{}
	for n, name := range names {
		if at, far := list[n]; far {
			dir := filepath.Join(top, fmt.Sprint(n), filepath.Base(name))
			if err := f.fetch(ctx, at, dir); err != nil {
				return nil, nil, done, err
			}
			from[dir], name = name, dir
		}
		dirs = append(dirs, name)
	}
	return dirs, from, done, nil
}

// fetch fetches one.
func (f *bucketFlag) fetch(ctx context.Context, at bucket.Address, dir string) error {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = f.opened.Fetch(ctx, at, dir)
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if far := (bucket.ServerError{}); errors.As(err, &far) {
		return fail(exitUnreachable, err)
	}
	return fail(exitRunDir, err)
}
