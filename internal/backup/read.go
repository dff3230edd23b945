package backup

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/secretkey"
)

// Reader reads a backup: State, then Records, then End. A backup is whole only if End succeeds.
type Reader struct {
	Head   Head
	Secret identity.CellSecret
	Sealed []byte // secret in the form in which the backup has it

	blocks  *blockReader
	records map[archive.Kind]uint64
}

// NewReader reads the head and the secret. It needs the key that the service had when the backup was made; with another key the error is a
// *secretkey.Wrong.
func NewReader(in io.Reader, key *secretkey.Key) (*Reader, error) {
	blocks, err := newBlockReader(in)
	if err != nil {
		return nil, err
	}
	r := &Reader{blocks: blocks, records: map[archive.Kind]uint64{}}
	head, err := blocks.whole(headBlock)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(head, &r.Head); err != nil {
		return nil, blocks.damaged("its head: %s", err)
	}
	switch h := r.Head; {
	case h.Format > sealedFormat:
		return nil, &kernel.LaterRelease{What: fmt.Sprintf("a backup of format %d", h.Format), Known: knownLevel()}
	case h.Format < 1 || h.Entry == 0 || h.Installation == uuid.Nil:
		return nil, blocks.damaged("its head says %+v", h)
	case h.Level > knownLevel():
		return nil, &kernel.LaterRelease{Level: h.Level, Known: knownLevel()}
	}
	secret, err := blocks.whole(secretBlock)
	if err != nil {
		return nil, err
	}
	r.Sealed = secret
	if r.Secret, err = OpenSecret(secret, key); errors.Is(err, ErrDamaged) {
		return nil, blocks.damaged("its secret: %s", err)
	}
	return r, err
}

// OpenSecret decrypts the secret of a backup. If key is not the service's, the error is a *secretkey.Wrong.
func OpenSecret(sealed []byte, key *secretkey.Key) (s identity.CellSecret, err error) {
	text, err := key.Open("the secret in the backup", sealedName, sealed)
	if err == nil {
		s, err = identity.ParseCellSecret(string(text))
	}
	if _, wrong := errors.AsType[*secretkey.Wrong](err); err != nil && !wrong {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return s, err
}

func knownLevel() uint { return cell.New(cell.DefaultConfig()).KnownLevel() }

// State returns the state in the format of snapshots.
func (r *Reader) State() io.Reader { return part{r.blocks, stateBlock} }

// Entries returns the journal entries, which are between State and Records. A batch is valid until the next one.
func (r *Reader) Entries() iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		EachEntry(part{r.blocks, entryBlock}, func(e journal.Entry, err error) bool {
			if err != nil && !errors.Is(err, ErrDamaged) {
				err = r.blocks.damaged("%s", err)
			}
			return yield(e, err)
		})
	}
}

// EachEntry yields a sequence of entries, each encoded as its number, its length and its content.
func EachEntry(in io.Reader, yield func(journal.Entry, error) bool) {
	from := bufio.NewReaderSize(in, 64<<10)
	var batch []byte
	for {
		number, err := binary.ReadUvarint(from)
		if err == io.EOF {
			return
		}
		var size uint64
		if err == nil {
			size, err = binary.ReadUvarint(from)
		}
		if err == nil && size > journal.MaxBatchBytes {
			err = fmt.Errorf("entry %d of the journal: %d bytes; want at most %d", number, size, journal.MaxBatchBytes)
		}
		if err == nil {
			batch = slices.Grow(batch[:0], int(size))[:size]
			_, err = io.ReadFull(from, batch)
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if !yield(journal.Entry{Number: number, Batch: batch}, err) || err != nil {
			return
		}
	}
}

// Records returns the records of the archive in the order in which they must be stored: a later one replaces an earlier one with the same id.
func (r *Reader) Records() iter.Seq2[archive.Record, error] {
	return func(yield func(archive.Record, error) bool) {
		from := bufio.NewReaderSize(part{r.blocks, archiveBlock}, 64<<10)
		for {
			record, err := ReadRecord(from)
			switch {
			case err == io.EOF:
				return
			case err != nil:
				if !errors.Is(err, ErrDamaged) {
					err = r.blocks.damaged("%s", err)
				}
				yield(archive.Record{}, err)
				return
			}
			r.records[record.Kind]++
			if !yield(record, nil) {
				return
			}
		}
	}
}

// End returns the summary at the end of the backup, after checking that it agrees with what was read.
func (r *Reader) End() (s Summary, err error) {
	end, err := r.blocks.whole(endBlock)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(end, &s.End); err != nil {
		return s, r.blocks.damaged("its end: %s", err)
	}
	if !maps.Equal(s.Records, r.records) {
		return s, r.blocks.damaged("records by kind: %v, its end says %v", r.records, s.Records)
	}
	s.Head, s.Bytes = r.Head, r.blocks.offset
	return s, nil
}

// Copy copies a full backup, checks its blocks on the way, and returns its summary. It reads to the end of the stream, which may have a proof there.
// key is as in NewReader.
func Copy(to io.Writer, from io.Reader, key *secretkey.Key) (s Summary, err error) {
	out := &target{to: to}
	defer func() { err = cmp.Or(out.err, err) }() // the reader takes an error of the target for one of the backup
	in := io.TeeReader(from, out)
	r, err := NewReader(in, key)
	if err != nil {
		return s, err
	}
	if _, err := io.Copy(io.Discard, r.State()); err != nil {
		return s, err
	}
	for _, err := range r.Records() {
		if err != nil {
			return s, err
		}
	}
	if s, err = r.End(); err != nil {
		return s, err
	}
	_, err = io.Copy(io.Discard, in)
	return s, err
}

// target keeps the first error of a writer.
type target struct {
	to  io.Writer
	err error
}

func (t *target) Write(p []byte) (int, error) {
	n, err := t.to.Write(p)
	t.err = cmp.Or(t.err, err)
	return n, err
}

// Verify reads a whole backup, loads its state, and returns it with the summary. key is as in NewReader.
func Verify(in io.Reader, config cell.Config, key *secretkey.Key) (s Summary, state *cell.Cell, err error) {
	r, err := NewReader(in, key)
	if err != nil {
		return s, nil, err
	}
	state = cell.New(config)
	from := r.State()
	if err := state.Load(from); err != nil {
		if _, later := errors.AsType[*kernel.LaterRelease](err); later || errors.Is(err, ErrDamaged) {
			return s, nil, err
		}
		return s, nil, r.blocks.damaged("its state cannot be loaded: %s", err)
	}
	if n, err := io.Copy(io.Discard, from); err != nil || n > 0 {
		return s, nil, errors.Join(err, r.blocks.damaged("%d bytes after the end of its state", n))
	}
	if err := r.check(state); err != nil {
		return s, nil, err
	}
	if r.Head.Since != nil {
		return s, nil, r.blocks.damaged("it contains only what was new since entry %d", r.Head.Since.Entry)
	}
	for _, err := range r.Records() {
		if err != nil {
			return s, nil, err
		}
	}
	s, err = r.End()
	return s, state, err
}

// check compares the state with the head and with the secret.
func (r *Reader) check(state *cell.Cell) error {
	h := r.Head
	if state.Level() != h.Level || state.Forgotten() != h.Forgotten || !state.Last().Std().Equal(h.State) {
		return r.blocks.damaged("its state is at level %d of %s, with %d forgotten records; its head says %+v", state.Level(), state.Last().Std(), state.Forgotten(), h)
	}
	v := state.View()
	if missing, fits := r.Secret.Fits(v.SecretStandings()); !fits || len(missing) > 0 {
		return r.blocks.damaged("its secret is not the one that its access keys are derived from")
	}
	return nil
}
