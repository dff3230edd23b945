package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/archive"
)

const (
	fillRest  = 10 * time.Millisecond // minimum pause between two pages; longer if the other node took longer for a page
	fillRetry = time.Second           // until the nodes are asked again after all have failed to give a copy
	fillSay   = time.Minute           // minimum time between two log lines about that
)

// fillArchive is the goroutine that copies the records missing from this node's archive from another node, page by page. Each page is stored together
// with the progress, so after a restart, or when the other node fails, the copy continues from there with any node.
func (e *Engine) fillArchive(ctx context.Context) {
	var said time.Time
	for ctx.Err() == nil {
		if e.covers.complete() {
			select {
			case <-e.covers.lacks:
			case <-ctx.Done():
			}
			continue
		}
		err := errNoSource
		for _, node := range e.otherNodes() {
			began := time.Now()
			var copied int
			if copied, err = e.fillFrom(ctx, node); err == nil {
				e.log.Info("this node's archive is complete", "node", node, "copied", copied, "took", time.Since(began).Round(time.Millisecond))
				break
			}
			if copied > 0 {
				e.log.Info("the copy of the archive continues with the next node", "node", node, "copied", copied, "error", err)
			}
			if ctx.Err() != nil {
				break
			}
		}
		switch {
		case err == nil, ctx.Err() != nil:
			continue
		case errors.Is(err, archive.ErrFailed):
			e.log.Error("the archive failed while records were copied to it", "error", err)
			return // any other write fails, too, and stops the engine
		case time.Since(said) >= fillSay:
			said = time.Now()
			e.log.Warn("no other node provides a copy of the archived records: this node tries again", "error", err)
		}
		select {
		case <-time.After(fillRetry):
		case <-ctx.Done():
		}
	}
}

var errNoSource = errors.New("no other node is known")

// fillFrom copies the missing records from one node.
func (e *Engine) fillFrom(ctx context.Context, node string) (copied int, err error) {
	damaged := 0
	covers, _ := e.covers.get()
	for place := (archive.Place{Ended: covers.From}); ; {
		began := time.Now()
		covers := e.covers.ask()
		page, err := e.ask(ctx, node, &ArchiveQuestion{Entry: covers.Entry, Behind: place, Bytes: pageBytes})
		if err != nil {
			return copied, err
		}
		if page.More && page.Next == place {
			return copied, fmt.Errorf("the page behind %d has no end", place.Ended)
		}
		took := time.Since(began)
		added, next, err := e.addPage(ctx, page)
		if err != nil {
			return copied, err
		}
		copied += added
		damaged += page.Damaged
		e.metrics.copied.Add(float64(added))
		e.metrics.copiedDamaged.Add(float64(page.Damaged))
		if e.covers.complete() {
			if damaged > 0 {
				e.log.Warn("records that another node could not read were not copied", "node", node, "places", damaged)
			}
			return copied, nil
		}
		place = next
		if err := e.restFrom(ctx, max(took, fillRest)); err != nil {
			return copied, err
		}
	}
}

// restFrom pauses to leave the other node time for its own work, and waits while this node is short of space.
func (e *Engine) restFrom(ctx context.Context, rest time.Duration) error {
	for {
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return ctx.Err()
		}
		if e.config.Short() == nil {
			return nil
		}
		rest = archiveRetry
	}
}

// unexpired removes records whose retention has ended. Both nodes of a copy do so: the copying node may have applied no entry since its start, and
// its time is then far behind.
func (e *Engine) unexpired(records []archive.Record) []archive.Record {
	expired := e.Now().Add(-e.config.Retention).UnixMilli()
	return slices.DeleteFunc(records, func(r archive.Record) bool { return r.Ended < expired })
}

// addPage stores the unexpired records of a page together with the progress of the copy. It returns where the next page begins.
func (e *Engine) addPage(ctx context.Context, page *ArchiveAnswer) (added int, next archive.Place, err error) {
	page.Records = e.unexpired(page.Records)
	e.covers.writing.Lock()
	defer e.covers.writing.Unlock()
	e.covers.lock.Lock()
	covers, missed := e.covers.now, e.covers.missed
	e.covers.lock.Unlock()
	next = page.Next
	if jumped := missed != math.MaxInt64; !page.More && !jumped {
		added, err = e.completeArchive(ctx, page.Records, covers)
		return added, next, err
	}
	// Another node may have sorted a record that ended at the same time into an earlier or a later page. And records that became missing since the
	// question are not in the page.
	covers.From = max(covers.From, min(next.Ended-archive.Grain, missed))
	if next.Ended >= missed {
		next = archive.Place{Ended: missed}
	}
	if added, err = e.config.Archive.Add(ctx, page.Records, covers); err == nil {
		e.covers.set(covers)
	}
	return added, next, err
}
