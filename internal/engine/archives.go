package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
)

// Archives gives access to the archives of the other nodes of a cluster. Its methods may be called concurrently.
type Archives interface {
	// Nodes returns the ids of the other nodes in the order in which to ask them.
	Nodes() []string
	// Ask sends a question to a node, which answers it with AnswerArchive.
	Ask(ctx context.Context, node string, q *ArchiveQuestion) (*ArchiveAnswer, error)
}

// ArchiveQuestion asks another node's archive for one record (ID), for a list (Index and Key), or for a page of all records (Bytes).
type ArchiveQuestion struct {
	Entry uint64 // the node answers once it has applied this journal entry

	Kind archive.Kind
	ID   string

	Index archive.Index
	Key   string
	After archive.Cursor
	Limit int

	Behind archive.Place
	Bytes  int // size of a page; 0: the question is not for a page
}

// ArchiveAnswer holds the records found. More reports that others may follow the last one.
type ArchiveAnswer struct {
	Records []archive.Record
	More    bool
	Next    archive.Place // where the next page begins
	Damaged int           // number of places that could not be read
	Sum     uint32        // archive.Sum of Records
}

// ErrArchiveLacks is the error of a node whose own archive is incomplete.
var ErrArchiveLacks = errors.New("the archive of this node lacks records")

const (
	archiveWait   = 3 * time.Second // how long a node waits to apply the entry of a question
	answerBytes   = 4 << 20         // most bytes in a list
	answerRecords = 16              // records read at a time
	pageBytes     = 1 << 20
	lookUpWait    = 10 * time.Second // by then the node that asked has given up
)

// AnswerArchive answers another node's question from this node's archive.
func (e *Engine) AnswerArchive(ctx context.Context, q *ArchiveQuestion) (*ArchiveAnswer, error) {
	waiting, cancel := context.WithTimeout(ctx, archiveWait)
	defer cancel()
	if err := e.durable.wait(waiting, q.Entry, e.stopError); err != nil {
		return nil, fmt.Errorf("wait for journal entry %d: %w", q.Entry, err)
	}
	if !e.covers.complete() { // checked only now: a snapshot that made the archive incomplete may have brought the entry
		return nil, ErrArchiveLacks
	}
	looking, cancel := context.WithTimeout(ctx, lookUpWait)
	defer cancel()
	a, err := e.lookUp(looking, q)
	if err != nil {
		return nil, err
	}
	a.Sum = archive.Sum(a.Records)
	return a, nil
}

func (e *Engine) lookUp(ctx context.Context, q *ArchiveQuestion) (*ArchiveAnswer, error) {
	a := &ArchiveAnswer{}
	switch {
	case q.Bytes > 0:
		page, err := e.config.Archive.Page(ctx, q.Behind, min(q.Bytes, pageBytes))
		a.Records, a.More, a.Next, a.Damaged = e.unexpired(page.Records), page.More, page.Next, page.Damaged
		return a, err
	case q.Index == 0:
		r, found, err := e.config.Archive.Get(ctx, q.Kind, q.ID)
		if found {
			a.Records = []archive.Record{r}
		}
		if err != nil && ignoreDamage(err) == nil {
			a.Damaged, err = 1, nil
		}
		return a, err
	}
	a.More = true
	for bytes := 0; a.More && len(a.Records) < q.Limit && bytes < answerBytes; {
		wanted := min(q.Limit-len(a.Records), answerRecords)
		some, err := e.config.Archive.List(ctx, q.Kind, q.Index, q.Key, q.After, wanted)
		if err != nil {
			if ignoreDamage(err) != nil {
				return nil, err
			}
			a.Damaged++
		}
		for i := range some {
			bytes += len(some[i].Data)
			q.After = some[i].Cursor()
		}
		a.Records = append(a.Records, some...)
		a.More = len(some) == wanted
	}
	return a, nil
}

// archived looks up an ended record in this node's archive. While that archive is incomplete, it also asks the other nodes.
func (e *Engine) archived(ctx context.Context, kind archive.Kind, id string) (archive.Record, bool, error) {
	if e.covers.complete() {
		return e.config.Archive.Get(ctx, kind, id)
	}
	a, err := e.askOthers(ctx, &ArchiveQuestion{Kind: kind, ID: id})
	switch {
	case err != nil:
		return archive.Record{}, false, err
	case a == nil:
		return e.config.Archive.Get(ctx, kind, id)
	case a.Damaged > 0:
		return archive.Record{}, false, damagedElsewhere
	case len(a.Records) == 0:
		return archive.Record{}, false, nil
	}
	return a.Records[0], true, nil
}

// archivedList lists ended records from the same archives as archived.
func (e *Engine) archivedList(ctx context.Context, kind archive.Kind, index archive.Index, key string, after archive.Cursor, limit int) (all []archive.Record, err error) {
	if e.covers.complete() {
		return e.config.Archive.List(ctx, kind, index, key, after, limit)
	}
	for more := true; more && len(all) < limit; {
		a, askErr := e.askOthers(ctx, &ArchiveQuestion{Kind: kind, Index: index, Key: key, After: after, Limit: limit - len(all)})
		switch {
		case askErr != nil:
			return nil, askErr
		case a == nil:
			rest, err := e.config.Archive.List(ctx, kind, index, key, after, limit-len(all))
			return append(all, rest...), err
		case a.Damaged > 0:
			err = damagedElsewhere
		}
		all = append(all, a.Records...)
		if more = a.More && len(a.Records) > 0; more {
			after = a.Records[len(a.Records)-1].Cursor()
		}
	}
	return all, err
}

// damagedElsewhere reports damage in another node's archive; that node has logged the details.
var damagedElsewhere = &archive.Damaged{Place: "another node", Err: errors.New("the archive of that node has logged the places")}

// askOthers asks one node after another until one answers. It returns nil if this node's own archive has become complete.
func (e *Engine) askOthers(ctx context.Context, q *ArchiveQuestion) (*ArchiveAnswer, error) {
	q.Entry = e.durable.reached.Load() // a record that the caller missed in memory left it at this entry or earlier
	for _, node := range e.otherNodes() {
		a, err := e.ask(ctx, node, q)
		if err == nil {
			return a, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		e.log.Debug("another node did not answer for the records that this node's archive lacks", "node", node, "error", err)
	}
	if e.covers.complete() {
		return nil, nil
	}
	return nil, domain.Refuse(domain.Overloaded, "this node is still copying the records of what has ended, and no node that has them can be reached")
}

func (e *Engine) otherNodes() []string {
	if e.config.Archives == nil {
		return nil
	}
	return e.config.Archives.Nodes()
}

var errSum = errors.New("the records differ from those that were sent")

// ask sends the question to another node and validates the answer.
func (e *Engine) ask(ctx context.Context, node string, q *ArchiveQuestion) (*ArchiveAnswer, error) {
	a, err := e.config.Archives.Ask(ctx, node, q)
	if err == nil && archive.Sum(a.Records) != a.Sum {
		err = errSum
	}
	return a, err
}
