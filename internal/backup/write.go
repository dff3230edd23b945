package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/secretkey"
)

const (
	format       = 1 // of a backup whose secret is not encrypted: earlier releases read it, too
	sealedFormat = 2
	pageBytes    = 1 << 20
	sealedName   = "backup" // under which the secret is encrypted
)

// Head says what a backup is of.
type Head struct {
	Format       int       `json:"format"`
	Installation uuid.UUID `json:"installation"`
	Entry        uint64    `json:"entry"`     // it has the state after this journal entry
	Level        uint      `json:"level"`     // in force
	State        time.Time `json:"state"`     // of the last change, by the clock of the service
	Forgotten    uint64    `json:"forgotten"` // records that had left memory for the archive
	Made         time.Time `json:"made"`
	Release      string    `json:"release,omitempty"`
}

// Summary says what is in a backup.
type Summary struct {
	Head  Head  `json:"head"`
	Bytes int64 `json:"bytes"` // of the file
	End
}

// End is the content of the end block.
type End struct {
	Records map[archive.Kind]uint64 `json:"records"` // of the archive
	Damaged int                     `json:"damaged"` // places of the archive that could not be read when the backup was made
}

// Content is what goes into a backup.
type Content struct {
	Head    Head
	State   func(io.Writer) error
	Secret  identity.CellSecret
	Key     *secretkey.Key // encrypts the secret; nil: it is not encrypted
	Archive archive.Archive
}

// Write writes a backup. The archive may receive further records meanwhile.
func Write(ctx context.Context, out io.Writer, c Content) (s Summary, err error) {
	c.Head.Format = format
	if c.Key != nil {
		c.Head.Format = sealedFormat
	}
	s = Summary{Head: c.Head, End: End{Records: map[archive.Kind]uint64{}}}
	w := newBlockWriter(out)
	head, err := json.Marshal(c.Head)
	if err != nil {
		return s, err
	}
	w.whole(headBlock, head)
	w.whole(secretBlock, c.Key.Seal(sealedName, []byte(c.Secret.Text())))
	if err := w.begin(stateBlock); err != nil {
		return s, err
	}
	if err := c.State(w); err != nil {
		return s, fmt.Errorf("write the state: %w", err)
	}
	if err := w.begin(archiveBlock); err != nil {
		return s, err
	}
	if err := writeRecords(ctx, w, c, &s); err != nil {
		return s, err
	}
	end, err := json.Marshal(s.End)
	if err != nil {
		return s, err
	}
	w.whole(endBlock, end)
	err = w.begin(0)
	s.Bytes = w.written
	return s, err
}

func (w *blockWriter) whole(kind byte, content []byte) {
	if w.begin(kind) == nil {
		_, _ = w.Write(content) // begin returns its error
	}
}

// writeRecords writes what had left memory before the state was frozen. That ended before the state's last change. What ended later is not written: in the state
// it has not ended yet.
func writeRecords(ctx context.Context, w *blockWriter, c Content, s *Summary) error {
	last := c.Head.State.UnixMilli()
	var buffer []byte
	for place, more := (archive.Place{}), true; more; {
		page, err := c.Archive.Page(ctx, place, pageBytes)
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		for i := range page.Records {
			r := &page.Records[i]
			if r.Ended >= last {
				continue
			}
			buffer = appendRecord(buffer[:0], r)
			if _, err := w.Write(buffer); err != nil {
				return err
			}
			s.Records[r.Kind]++
		}
		s.Damaged += page.Damaged
		place, more = page.Next, page.More && page.Next.Ended-archive.Grain <= last
	}
	return w.err
}
