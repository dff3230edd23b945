package export

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
)

// An export goes from the service to the command that stores it as lines: an H with the Head as JSON; records, each behind the name of its kind; a C with a time in Unix
// milliseconds before which no more records come; and at the end an E with the number of places of the archive that could not be read.

// Head describes a stream.
type Head struct {
	Installation uuid.UUID `json:"installation"`
	From         int64     `json:"from"`  // records that ended at or after this time, Unix milliseconds
	Until        int64     `json:"until"` // and before this time
}

// Bounds. A part of the archive that ended in some time is sorted in memory.
const (
	partBytes = 32 << 20 // of a part; one of partLeast may have more
	partLeast = time.Second
	partFirst = 10 * time.Minute
	partMost  = 24 * time.Hour
	pageBytes = 1 << 20
	lineMax   = 16 << 20
)

// Write sends the records that ended from h.From on and before h.Until, in the order of their ends. All of them must be in the archive. No kinds: all.
func Write(ctx context.Context, out io.Writer, a archive.Archive, h Head, kinds []string) error {
	w := bufio.NewWriterSize(out, 256<<10)
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "H %s\n", head) // its errors come back from Flush
	damaged := 0
	step := partFirst.Milliseconds()
	for at := h.From; at < h.Until; {
		end := min(at+step, h.Until)
		part, err := between(ctx, a, at, end)
		if err != nil {
			return err
		}
		if part.large && end-at > partLeast.Milliseconds() {
			step = max((end-at)/2, partLeast.Milliseconds())
			continue
		}
		for i := range part.records {
			r := &part.records[i]
			if len(kinds) > 0 && !slices.Contains(kinds, archived[r.Kind]) {
				continue
			}
			text, err := line(r)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%s %s\n", archived[r.Kind], text)
		}
		damaged += part.damaged
		fmt.Fprintf(w, "C %d\n", end)
		if err := w.Flush(); err != nil {
			return err
		}
		if at = end; part.bytes < partBytes/4 {
			step = min(2*step, partMost.Milliseconds())
		}
	}
	fmt.Fprintf(w, "E %d\n", damaged)
	return w.Flush()
}

type part struct {
	records        []archive.Record // in the order of their ends, each once
	bytes, damaged int
	large          bool // it has too many bytes, and not all records
}

// between returns the records of the archive that ended at or after from and before end.
func between(ctx context.Context, a archive.Archive, from, end int64) (p part, err error) {
	type id struct {
		kind archive.Kind
		id   string
	}
	at := map[id]int{}
	for behind := (archive.Place{Ended: from}); ; {
		page, err := a.Page(ctx, behind, pageBytes)
		if err != nil {
			return p, err
		}
		for i := range page.Records {
			r := &page.Records[i]
			if _, exported := archived[r.Kind]; !exported || r.Ended < from || r.Ended >= end {
				continue
			}
			if n, twice := at[id{r.Kind, r.ID}]; twice { // the archive may give a record twice
				if r.Supersedes(&p.records[n]) {
					p.records[n] = *r
				}
				continue
			}
			at[id{r.Kind, r.ID}] = len(p.records)
			p.records = append(p.records, *r)
			p.bytes += len(r.Data) + 256
		}
		p.damaged += page.Damaged
		if behind = page.Next; !page.More || behind.Ended-archive.Grain >= end {
			break
		}
		if p.large = p.bytes > partBytes; p.large && end-from > partLeast.Milliseconds() {
			return p, nil
		}
	}
	slices.SortFunc(p.records, func(a, b archive.Record) int {
		return cmp.Or(cmp.Compare(a.Ended, b.Ended), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	return p, nil
}

// Store is where a command stores an export.
type Store interface {
	// Begin is called once, before any record.
	Begin(h Head) error
	// Line stores a record. It must not keep the slice.
	Line(kind string, text []byte) error
	// Complete says that all records that ended before a time have been passed to Line. last: there are no more at all.
	Complete(until int64, last bool) error
}

// Read stores a stream. It returns the number of records and the number of places of the archive that could not be read.
func Read(in io.Reader, s Store) (records, damaged int, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), lineMax)
	begun, until := false, int64(0)
	for lines.Scan() {
		what, text, _ := bytes.Cut(lines.Bytes(), []byte(" "))
		switch name := string(what); {
		case name == "H" && !begun:
			var h Head
			if err := json.Unmarshal(text, &h); err != nil {
				return records, 0, fmt.Errorf("head of the export: %w", err)
			}
			begun, until = true, h.From
			if err := s.Begin(h); err != nil {
				return records, 0, err
			}
		case !begun:
			return records, 0, errors.New("the export has no head")
		case name == "C":
			if until, err = strconv.ParseInt(string(text), 10, 64); err == nil {
				err = s.Complete(until, false)
			}
			if err != nil {
				return records, 0, err
			}
		case name == "E":
			if damaged, err = strconv.Atoi(string(text)); err != nil {
				return records, 0, err
			}
			if _, err := io.Copy(io.Discard, in); err != nil { // the service's proof comes after the stream
				return records, 0, err
			}
			return records, damaged, s.Complete(until, true)
		case slices.Contains(Kinds, name):
			if err := s.Line(name, text); err != nil {
				return records, 0, err
			}
			records++
		default:
			return records, 0, fmt.Errorf("a line of the export begins with %.20q", name)
		}
	}
	return records, 0, cmp.Or(lines.Err(), error(io.ErrUnexpectedEOF))
}
