// Package repository keeps many backups of an installation in one place, a directory or a bucket. Each backup is complete by itself;
// content that several share is stored once. A backup exists as soon as its manifest does, which is written last. The next backup uses or
// removes whatever an interrupted one has left.
//
// Any number of programs may write to a repository concurrently, and none waits for another. Three rules make that safe. No object is ever
// written twice, because its name contains the run that wrote it. A backup refers only to objects of the backup that it builds on, its own
// objects, and young ones. A removed object is old, and was selected after the last backup that needed it was removed.
// docs/formats/backup-repository.md describes the objects.
package repository

import (
	"context"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/backup"
)

// Store is a place for objects.
type Store interface {
	// Put stores a new object. On success it is durable and complete; after an error it may not exist.
	Put(ctx context.Context, name string, content []byte) error
	// Get returns an object of at most `most` bytes. If it does not exist, the error is fs.ErrNotExist.
	Get(ctx context.Context, name string, most int64) ([]byte, error)
	// List returns the objects whose names begin with below, and the time of the store.
	List(ctx context.Context, below string) (all []Object, now time.Time, err error)
	// Delete removes an object. A missing object is not an error.
	Delete(ctx context.Context, name string) error
	// String returns the name of the place, for people.
	String() string
}

// Object describes an object in a store.
type Object struct {
	Name     string
	Size     int64
	Modified time.Time // by the clock of the store
}

const (
	objectsBelow   = "objects/" // objects/ab/abcd….RUN
	manifestsBelow = "backups/" // backups/ENTRY-RUN.json

	// marker is an object that distinguishes a repository from another directory.
	marker = "muster-backups.json"

	// youngFor is how long an object that no backup refers to may be used: a remainder of an interrupted backup.
	youngFor = 12 * time.Hour
	// oldAfter is how old an object must be to be removed. It is more than youngFor and runMax together.
	oldAfter = 24 * time.Hour
	// runMax bounds the duration of a backup.
	runMax = 11 * time.Hour
	// settleFor is the age from which on a manifest stays. Before that age, its program may still check whether the backup is complete.
	settleFor = 10 * time.Minute
)

// damagedError is the error of an incomplete backup.
type damagedError struct{ what string }

func (e *damagedError) Error() string { return e.what }

// Unwrap implements errors.Is.
func (e *damagedError) Unwrap() error { return backup.ErrDamaged }

func damaged(format string, args ...any) error { return &damagedError{fmt.Sprintf(format, args...)} }
