// Package repository keeps many backups of an installation in one place, a directory or a bucket. Each backup is complete by itself, and what several have in common is
// stored once. A backup exists from the moment its manifest does, which is written last; whatever a backup that broke off has left is used by the next one, or removed.
//
// Any number of programs may write to a repository at the same time, and none waits for another. Three rules make that safe: no object is ever written twice, because
// its name has that of the run that wrote it; a backup refers only to objects of the backup that it builds on, of its own, and to young ones; and what is removed is old,
// and was looked for after the last backup that needed it was removed. docs/formats/backup-repository.md describes the objects.
package repository

import (
	"context"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/backup"
)

// Store is a place for objects.
type Store interface {
	// Put stores an object that does not exist. It is durable and whole, or, after an error, may not exist.
	Put(ctx context.Context, name string, content []byte) error
	// Get returns an object of at most so many bytes. One that does not exist is fs.ErrNotExist.
	Get(ctx context.Context, name string, most int64) ([]byte, error)
	// List returns the objects whose names begin with below, and the time of the store.
	List(ctx context.Context, below string) (all []Object, now time.Time, err error)
	// Delete removes an object. One that does not exist is no error.
	Delete(ctx context.Context, name string) error
	// String names the place, for people.
	String() string
}

// Object is what a store says of an object.
type Object struct {
	Name     string
	Size     int64
	Modified time.Time // by the clock of the store
}

const (
	objectsBelow   = "objects/" // objects/ab/abcd….RUN
	manifestsBelow = "backups/" // backups/ENTRY-RUN.json

	// marker is an object that tells a repository from another directory.
	marker = "muster-backups.json"

	// youngFor is for how long an object may be used that no backup refers to: the rest of one that broke off.
	youngFor = 12 * time.Hour
	// oldAfter is how old an object must be to be removed. It is more than youngFor and runMax together.
	oldAfter = 24 * time.Hour
	// runMax ends a backup.
	runMax = 11 * time.Hour
	// settleFor is the age from which on a manifest stays: before, its program may still look whether the backup is whole.
	settleFor = 10 * time.Minute
)

// damagedError is the error of a backup that is not whole.
type damagedError struct{ what string }

func (e *damagedError) Error() string { return e.what }

// Unwrap implements errors.Is.
func (e *damagedError) Unwrap() error { return backup.ErrDamaged }

func damaged(format string, args ...any) error { return &damagedError{fmt.Sprintf(format, args...)} }
