package pebble

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/archive"
)

// Repair uses only the blocks of a damaged archive: they have checksums of their own, and all keys that refer to their records can be
// rebuilt from them. It reads the tables one by one without the database, which could not read past the damage.

// Report is the result of reading the tables of an archive.
type Report struct {
	Blocks, Records int         // readable ones
	Damage          []string    // unreadable places in tables
	Lost            []LostBlock // unreadable blocks, by number

	Installation uuid.UUID     // zero: unknown
	Mark         *archive.Mark // nil: unknown

	Coverage *archive.Coverage // nil: none or unknown
}

// LostBlock describes a lost block by the keys that refer to its records.
type LostBlock struct {
	Number       uint64
	Records      map[archive.Kind]int // at least this many
	First, Last  int64                // creation times of its records in Unix milliseconds, as far as known; 0: unknown
	LatestEnding int64                // in Unix milliseconds; 0: unknown
}

// Whole reports whether nothing is damaged.
func (r *Report) Whole() bool { return len(r.Damage) == 0 && len(r.Lost) == 0 }

// salvage reads all tables.
type salvage struct {
	files  vfs.FS
	dir    string
	report Report

	blocks  map[uint64]blockVersion
	removed map[string]uint64 // deleted keys, with the sequence number of the deletion
	small   map[string]uint64 // sequence numbers of the small values in the report
	lost    map[uint64]*lostBlock
}

// blockVersion is the newest version of a block.
type blockVersion struct {
	table   string
	seq     uint64
	deleted bool
	records int
}

type lostBlock struct {
	LostBlock
	counted map[string]bool
}

// Check reads all tables of the archive in dir and changes nothing. It needs no lock, because a complete table never changes. If an
// archive in use drops tables meanwhile, it reads again. A table that is being written looks damaged, so damage counts only if a second
// read finds the same.
func Check(ctx context.Context, dir string) (*Report, error) {
	found := ""
	for n := 1; ; n++ {
		s, err := look(ctx, vfs.Default, dir)
		if err != nil {
			return nil, fmt.Errorf("check archive %s: %w", dir, err)
		}
		again := fmt.Sprint(s.report.Damage, s.report.Lost)
		if s.report.Whole() || again == found || n == looks {
			return &s.report, nil
		}
		found = again
		select {
		case <-time.After(lookAgainAfter):
		case <-ctx.Done():
			return nil, fmt.Errorf("check archive %s: %w", dir, ctx.Err())
		}
	}
}

// lookAgainAfter is longer than a disk without a backlog takes to write a table.
const lookAgainAfter = 500 * time.Millisecond

// looks is how often an archive in use is read again.
const looks = 5

func look(ctx context.Context, files vfs.FS, dir string) (s *salvage, err error) {
	for range looks {
		s = &salvage{
			files: files, dir: dir, blocks: map[uint64]blockVersion{}, removed: map[string]uint64{}, small: map[string]uint64{}, lost: map[uint64]*lostBlock{},
		}
		if err = s.look(ctx); !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
	}
	return s, err
}

// look reads all tables twice: first to find the blocks, then to find keys that refer to missing blocks.
func (s *salvage) look(ctx context.Context) error {
	names, err := s.files.List(s.dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	known := detours{}
	pass := func(visit func(table string, e entry), damaged func(table string, after []byte, err error)) error {
		for _, name := range names {
			if !strings.HasSuffix(name, ".sst") {
				continue
			}
			err := eachEntry(ctx, s.files, s.files.PathJoin(s.dir, name), known,
				func(e entry) { visit(name, e) }, func(after []byte, err error) { damaged(name, after, err) })
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := pass(s.note, s.noteDamage); err != nil {
		return err
	}
	for _, b := range s.blocks {
		if !b.deleted {
			s.report.Blocks++
			s.report.Records += b.records
		}
	}
	if err := pass(s.noteLost, func(string, []byte, error) {}); err != nil {
		return err
	}
	for _, b := range s.lost {
		s.report.Lost = append(s.report.Lost, b.LostBlock)
	}
	slices.SortFunc(s.report.Lost, func(a, b LostBlock) int { return cmp.Compare(a.Number, b.Number) })
	return nil
}

func (s *salvage) noteDamage(table string, after []byte, err error) {
	where := "at its beginning"
	if len(after) > 0 {
		where = fmt.Sprintf("after key %x", after)
	}
	s.report.Damage = append(s.report.Damage, fmt.Sprintf("table %s, %s: %v", table, where, err))
}

// note records a block, a small value, or a deletion.
func (s *salvage) note(table string, e entry) {
	if e.deleted {
		s.removed[string(e.key)] = max(s.removed[string(e.key)], e.seq)
	}
	number, err := decodeBlockKey(e.key)
	if err != nil {
		s.noteSmall(e)
		return
	}
	version := blockVersion{table: table, seq: e.seq, deleted: e.deleted}
	if !e.deleted {
		if version.records, err = countRecords(e.value, number); err != nil {
			s.report.Damage = append(s.report.Damage, fmt.Sprintf("table %s, block %d: %v", table, number, err))
			return
		}
	}
	if old, ok := s.blocks[number]; !ok || e.seq > old.seq {
		s.blocks[number] = version
	}
}

func countRecords(block []byte, number uint64) (n int, err error) {
	rest, err := openBlock(block, number)
	for ; err == nil && len(rest) > 0; n++ {
		_, rest, err = nextRecord(rest)
	}
	return n, err
}

func (s *salvage) noteSmall(e entry) {
	if e.deleted || e.seq < s.small[string(e.key)] {
		return
	}
	switch {
	case bytes.Equal(e.key, ownerKey) && len(e.value) == len(uuid.UUID{}):
		s.report.Installation = uuid.UUID(e.value)
	case bytes.Equal(e.key, markKey) && len(e.value) == markSize:
		s.report.Mark = new(decodeMark(e.value))
	case bytes.Equal(e.key, coverageKey) && len(e.value) == coverageSize:
		s.report.Coverage = new(decodeCoverage(e.value))
	default:
		return
	}
	s.small[string(e.key)] = e.seq
}

// noteLost records what a key reveals about a missing block.
func (s *salvage) noteLost(_ string, e entry) {
	if seq, ok := s.removed[string(e.key)]; e.deleted || ok && seq > e.seq {
		return
	}
	block, ok := blockOf(e)
	if _, there := s.blocks[block]; !ok || there {
		return
	}
	b := s.lost[block]
	if b == nil {
		b = &lostBlock{LostBlock{Number: block, Records: map[archive.Kind]int{}}, map[string]bool{}}
		s.lost[block] = b
	}
	b.note(e)
}

// blockOf returns the block to which a key or its value refers.
func blockOf(e entry) (block uint64, ok bool) {
	var at location
	var err error
	switch e.key[0] {
	case expiryPrefix:
		at.block, err = decodeExpiryKey(e.key)
	case idPrefix:
		at, err = decodeLocation(e.value)
	case listPrefix:
		_, at, err = decodeListKey(e.key)
	default:
		return 0, false
	}
	return at.block, err == nil
}

func (b *lostBlock) note(e entry) {
	switch e.key[0] {
	case expiryPrefix:
		b.LatestEnding = int64(uint48(e.key[1:]))
	case idPrefix:
		b.count(archive.Kind(e.key[1]), e.value)
	case listPrefix:
		created, at, _ := decodeListKey(e.key)
		b.count(archive.Kind(e.key[2]), at.append(nil))
		if b.First == 0 || created < b.First {
			b.First = created
		}
		b.Last = max(b.Last, created)
	}
}

// count counts a record once, even if several keys lead to it.
func (b *lostBlock) count(kind archive.Kind, at []byte) {
	if !b.counted[string(at)] {
		b.counted[string(at)] = true
		b.Records[kind]++
	}
}

// decodeMark decodes the result of encodeMark.
func decodeMark(value []byte) archive.Mark {
	return archive.Mark{Journal: binary.LittleEndian.Uint64(value), Forgotten: binary.LittleEndian.Uint64(value[8:])}
}
