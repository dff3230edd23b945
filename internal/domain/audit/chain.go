package audit

import (
	"bytes"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/domain"
)

// Chain checks stored entries in the order of their numbers, from the oldest one kept to the last.
type Chain struct {
	Now domain.Time

	Entries  uint64 // number of checked entries
	First    uint64 // number of the oldest
	Problems []Problem

	no   uint64
	hash []byte
}

// problemsMax is the most problems that are listed.
const problemsMax = 100

// slack allows for entries that expire during the check.
const slack = time.Hour

// Problem is a flaw found in the log.
type Problem struct {
	First, Last uint64 // numbers of the entries
	What        string
}

func (p Problem) String() string {
	if p.First == p.Last {
		return fmt.Sprintf("entry %d %s", p.First, p.What)
	}
	return fmt.Sprintf("entries %d to %d: each %s", p.First, p.Last, p.What)
}

func (c *Chain) problem(first, last uint64, what string) {
	if len(c.Problems) < problemsMax {
		c.Problems = append(c.Problems, Problem{first, last, what})
	}
}

// Add checks the next existing entry, in its stored form, under its number.
func (c *Chain) Add(no uint64, stored []byte) {
	e, err := Decode(stored)
	if c.Entries > 0 && no > c.no+1 && err == nil && e.No == no && e.PreviousUntil <= c.Now.Add(slack) {
		c.Entries = 0 // all earlier ones have expired, some of them during the check
	}
	switch {
	case c.Entries == 0:
		c.First = no
	case no != c.no+1:
		c.problem(c.no+1, no-1, "is missing") // entries expire in order
	}
	switch {
	case err != nil:
		c.problem(no, no, "cannot be read: it was altered")
	case e.No != no:
		c.problem(no, no, fmt.Sprintf("has the number %d inside: it was altered", e.No))
	case c.Entries == 0 && no > 1 && e.PreviousUntil > c.Now.Add(slack):
		c.problem(no-1, no-1, fmt.Sprintf("is missing: it should have been kept until %s", e.PreviousUntil.Std().UTC().Format(time.RFC3339)))
	case c.Entries > 0 && no == c.no+1 && !bytes.Equal(e.Previous, c.hash):
		c.problem(c.no, c.no, fmt.Sprintf("differs from what entry %d says of it: one of them was altered", no))
	}
	c.Entries++
	c.no, c.hash = no, Hash(stored)
}

// End checks that the last entry is the head in the state.
func (c *Chain) End(head Head) {
	switch {
	case head.No == c.no && !bytes.Equal(head.Hash, c.hash) && head.No > 0:
		c.problem(c.no, c.no, "differs from what the state says of it: it was altered")
	case head.No > c.no && head.Until > c.Now.Add(slack):
		c.problem(c.no+1, head.No, "is missing")
	case head.No < c.no:
		c.problem(head.No+1, c.no, "is not known to the state")
	}
}

// Anchor checks that an entry has the hash that was recorded elsewhere at an earlier time.
func (c *Chain) Anchor(no uint64, hash, stored []byte) {
	if !bytes.Equal(hash, Hash(stored)) {
		c.problem(no, no, "has another hash than the one that was noted: it was altered, or the log was rewritten")
	}
}
