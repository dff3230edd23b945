package backup

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/secretkey"
)

const (
	format       = 1 // of a backup whose secret is not encrypted; earlier releases can also read it
	sealedFormat = 2
	pageBytes    = 1 << 20
	sealedName   = "backup" // under which the secret is encrypted
)

// Head describes a backup.
type Head struct {
	Format       int       `json:"format"`
	Installation uuid.UUID `json:"installation"`
	Entry        uint64    `json:"entry"`     // the backup has the state after this journal entry
	Level        uint      `json:"level"`     // in force
	State        time.Time `json:"state"`     // of the last change, by the clock of the service
	Forgotten    uint64    `json:"forgotten"` // records that had left memory for the archive
	Made         time.Time `json:"made"`
	Release      string    `json:"release,omitempty"`

	Next      int64  `json:"next,omitempty"`      // records that leave memory later ended at or after this time; Unix milliseconds
	Audited   uint64 `json:"audited,omitempty"`   // last entry of the audit log that had left memory
	Retention int64  `json:"retention,omitempty"` // how long the archive keeps records, in milliseconds

	Since *Since `json:"since,omitempty"` // nil: it has all records
	From  uint64 `json:"from,omitempty"`  // first journal entry, of those up to Entry, that it has; 0: it has none
}

// Since describes an earlier backup, whose contents a backup that builds on it can omit.
type Since struct {
	Installation uuid.UUID `json:"installation"`
	Entry        uint64    `json:"entry"`
	Next         int64     `json:"next"` // the earlier backup has the records that ended before
	Audited      uint64    `json:"audited"`
}

// Continues reports whether the state of h comes from that of an earlier backup, so that the backup can build on it. noted is the entry of the
// last backup that the state has recorded. Each backup is recorded after its entry, so a state without the record is from before the backup, or
// from a history that branched off before it: a machine was rolled back to a snapshot, or the end of the journal was lost.
func (h *Head) Continues(since *Since, noted uint64) bool {
	return since != nil && since.Installation == h.Installation && since.Entry <= h.Entry && since.Entry <= noted
}

// Summary describes the contents of a backup.
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

// Content is the contents of a backup.
type Content struct {
	Head    Head
	State   func(io.Writer) error
	Secret  identity.CellSecret
	Key     *secretkey.Key // encrypts the secret; nil: it is not encrypted
	Archive archive.Archive

	Sealed  []byte                                                // secret in the form of another backup, instead of Secret and Key
	Records iter.Seq2[archive.Record, error]                      // instead of Archive; nil: those of Archive
	Entries func(f func(number uint64, batch []byte) error) error // of the journal, from Head.From to Head.Entry; nil: none
}

// Write writes a backup. The archive may receive further records meanwhile.
func Write(ctx context.Context, out io.Writer, c Content) (s Summary, err error) {
	return WriteCounted(ctx, out, c, 0)
}

// WriteCounted is Write for a caller that already knows how many places of the archive could not be read.
func WriteCounted(ctx context.Context, out io.Writer, c Content, damaged int) (s Summary, err error) {
	if c.Sealed == nil {
		c.Head.Format = format
		if c.Key != nil {
			c.Head.Format = sealedFormat
		}
		c.Sealed = c.Key.Seal(sealedName, []byte(c.Secret.Text()))
	}
	s = Summary{Head: c.Head, End: End{Records: map[archive.Kind]uint64{}, Damaged: damaged}}
	w := newBlockWriter(out)
	head, err := json.Marshal(c.Head)
	if err != nil {
		return s, err
	}
	w.whole(headBlock, head)
	w.whole(secretBlock, c.Sealed)
	if err := w.begin(stateBlock); err != nil {
		return s, err
	}
	if err := c.State(w); err != nil {
		return s, fmt.Errorf("write the state: %w", err)
	}
	if err := w.begin(entryBlock); err != nil {
		return s, err
	}
	if c.Entries != nil {
		if err := c.Entries(w.entry); err != nil {
			return s, fmt.Errorf("read the journal: %w", err)
		}
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

// writeRecords writes the records that had left memory before the state was frozen, all of which ended before the state's last change. It omits
// records that ended later, because in the state they have not ended yet.
func writeRecords(ctx context.Context, w *blockWriter, c Content, s *Summary) error {
	records := c.Records
	if records == nil {
		records = archived(ctx, c, &s.Damaged)
	}
	var buffer []byte
	for r, err := range records {
		if err != nil {
			return err
		}
		buffer = AppendRecord(buffer[:0], &r)
		if _, err := w.Write(buffer); err != nil {
			return err
		}
		s.Records[r.Kind]++
	}
	return w.err
}

// archived yields the records of an archive that belong to a backup.
func archived(ctx context.Context, c Content, damaged *int) iter.Seq2[archive.Record, error] {
	return func(yield func(archive.Record, error) bool) {
		place := archive.Place{}
		if c.Head.Since != nil {
			place.Ended = c.Head.Since.Next
		}
		for more := true; more; {
			page, err := c.Archive.Page(ctx, place, pageBytes)
			if err != nil {
				yield(archive.Record{}, fmt.Errorf("read the archive: %w", err))
				return
			}
			for i := range page.Records {
				if r := &page.Records[i]; c.Head.has(r) && !yield(*r, nil) {
					return
				}
			}
			*damaged += page.Damaged
			place, more = page.Next, page.More // entries of the audit log come after all others, because they are kept longer
		}
	}
}

// has reports whether a record of the archive belongs to the backup.
func (h *Head) has(r *archive.Record) bool {
	if r.Kind == archive.AuditEntry { // the end of such an entry says when it expires, not when it left memory
		no, ok := auditNo(r)
		return ok && no <= h.Audited && (h.Since == nil || no > h.Since.Audited)
	}
	return r.Ended < h.State.UnixMilli() && (h.Since == nil || r.Ended >= h.Since.Next)
}

// auditNo returns the number of an entry of the audit log, which is its id.
func auditNo(r *archive.Record) (no uint64, ok bool) {
	if len(r.ID) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64([]byte(r.ID)), true
}

// entry writes a journal entry: its number, its length, its content.
func (w *blockWriter) entry(number uint64, batch []byte) error {
	head := binary.AppendUvarint(binary.AppendUvarint(nil, number), uint64(len(batch)))
	_, err := w.Write(append(head, batch...))
	return err
}
