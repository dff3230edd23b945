package raft

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"
	"github.com/hashicorp/raft"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/journal"
	"github.com/musterhq/muster/internal/journal/snapshot"
)

const (
	snapshotSuffix  = ".snapshot"
	temporarySuffix = ".tmp"
	metaMagic       = "MUSTRFS1"
	metaFixed       = len(metaMagic) + 8 + 8 + 8 + 4
	streamHead      = 8 + 8 // of a snapshot's payload: magic and entry number
	maxMembersBytes = 1 << 20
)

// snapshots is the directory of snapshots, and Raft's snapshot store. A file begins with Raft's metadata and a checksum, followed by the
// stream that nodes send each other: the layout of package snapshot, which contains the number of the entry. A file gets its name only when
// it is complete and synced, and it counts only once the name is synced. Then the previous one is removed.
//
// Raft's own file store syncs as carefully, but it syncs a snapshot in one piece, which would delay appends, finds damage only after it has
// read everything, and cannot run on a simulated disk.
type snapshots struct {
	files     vfs.FS
	dir       string
	redundant func(index, term uint64) (bool, error) // reports whether this node has what Raft offers, or refuses it

	saving sync.Mutex // held for a whole save

	mu     sync.Mutex
	latest saved // zero: none
}

// saved is a stored snapshot.
type saved struct {
	place
	members
	name string
	head int64 // bytes before the stream
	size int64 // of the stream
}

var _ raft.SnapshotStore = (*snapshots)(nil)

func openSnapshots(files vfs.FS, dir string) (*snapshots, error) {
	s := &snapshots{files: files, dir: dir}
	if err := embeddb.MakeDir(files, dir); err != nil {
		return nil, err
	}
	names, err := files.List(dir)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		switch {
		case strings.HasSuffix(name, temporarySuffix): // of a save that did not finish
			_ = files.Remove(files.PathJoin(dir, name))
		case strings.HasSuffix(name, snapshotSuffix):
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return s, nil
	}
	s.latest, err = s.readMeta(slices.Max(found)) // by name, which begins with the index
	return s, err
}

func snapshotName(index, term uint64) string {
	return fmt.Sprintf("%020d-%020d%s", index, term, snapshotSuffix)
}

func (s *snapshots) path(name string) string { return s.files.PathJoin(s.dir, name) }

func (s *snapshots) get() saved {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest
}

func encodeMeta(at place, conf members) []byte {
	encoded := raft.EncodeConfiguration(conf.configuration)
	b := append(make([]byte, 0, metaFixed+len(encoded)+4), metaMagic...)
	b = binary.LittleEndian.AppendUint64(b, at.index)
	b = binary.LittleEndian.AppendUint64(b, at.term)
	b = binary.LittleEndian.AppendUint64(b, conf.index)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(encoded)))
	b = append(b, encoded...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// readMeta reads the beginning of a snapshot file.
func (s *snapshots) readMeta(name string) (found saved, err error) {
	path := s.path(name)
	file, err := s.files.Open(path)
	if err != nil {
		return saved{}, err
	}
	defer file.Close()
	defer func() {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errShort
		}
		if err != nil {
			err = &journal.Damaged{File: path, Err: err}
		}
	}()
	head := make([]byte, metaFixed)
	if _, err := io.ReadFull(file, head); err != nil {
		return saved{}, err
	}
	size := binary.LittleEndian.Uint32(head[metaFixed-4:])
	if string(head[:len(metaMagic)]) != metaMagic || size > maxMembersBytes {
		return saved{}, fmt.Errorf("it begins with %q, not with %q", head[:len(metaMagic)], metaMagic)
	}
	rest := make([]byte, size+4)
	if _, err := io.ReadFull(file, rest); err != nil {
		return saved{}, err
	}
	head = append(head, rest[:size]...)
	if crc32.Checksum(head, castagnoli) != binary.LittleEndian.Uint32(rest[size:]) {
		return saved{}, errChecksum
	}
	fields := head[len(metaMagic):]
	found.name = name
	found.place.index, found.term = binary.LittleEndian.Uint64(fields), binary.LittleEndian.Uint64(fields[8:])
	found.members.index = binary.LittleEndian.Uint64(fields[16:])
	found.configuration = raft.DecodeConfiguration(head[metaFixed:])
	found.head = int64(len(head)) + 4
	stream := make([]byte, streamHead)
	if _, err := io.ReadFull(file, stream); err != nil {
		return saved{}, err
	}
	found.number = binary.LittleEndian.Uint64(stream[8:])
	info, err := file.Stat()
	if err != nil {
		return saved{}, err
	}
	found.size = info.Size() - found.head
	return found, nil
}

// save writes a snapshot and makes it the latest one. It calls goOn between writes, and aborts with its error.
func (s *snapshots) save(at place, conf members, installation uuid.UUID, goOn func() error, write func(io.Writer) error) error {
	return s.store(at, conf, func(out io.Writer) error {
		return snapshot.Write(out, at.number, installation, goOn, write)
	}, nil)
}

// store writes a snapshot file with the stream that fill writes, checks it if check is not nil, and makes it the latest one.
func (s *snapshots) store(at place, conf members, fill func(io.Writer) error, check func(saved) error) error {
	name := snapshotName(at.index, at.term)
	temporary := name + temporarySuffix
	err := snapshot.WriteFile(s.files, s.path(temporary), func(out io.Writer) error {
		if _, err := out.Write(encodeMeta(at, conf)); err != nil {
			return err
		}
		return fill(out)
	})
	if err == nil && check != nil {
		err = s.checked(temporary, check)
	}
	if err != nil {
		_ = s.files.Remove(s.path(temporary))
		return err
	}
	return s.adopt(temporary, name)
}

func (s *snapshots) checked(name string, check func(saved) error) error {
	written, err := s.readMeta(name)
	if err != nil {
		return err
	}
	return check(written)
}

// adopt gives a complete and synced file its name, and makes it the latest snapshot unless a newer one came meanwhile.
func (s *snapshots) adopt(temporary, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.readMeta(temporary)
	if err == nil && found.place.index < s.latest.place.index {
		err = fmt.Errorf("%w: a snapshot after entry %d came meanwhile", journal.ErrOutOfOrder, s.latest.number)
	}
	if err == nil {
		err = s.files.Rename(s.path(temporary), s.path(name))
	}
	if err != nil {
		_ = s.files.Remove(s.path(temporary))
		return err
	}
	if err := embeddb.SyncDir(s.files, s.dir); err != nil {
		if name != s.latest.name { // both outcomes are correct, and until the next start the previous one stays the latest
			_ = s.files.Remove(s.path(name))
		}
		return err
	}
	found.name = name
	s.latest = found
	s.removeOlder(name)
	return nil
}

// removeOlder ignores errors, because the next snapshot removes what is left.
func (s *snapshots) removeOlder(latest string) {
	names, err := s.files.List(s.dir)
	if err != nil {
		return
	}
	for _, name := range names {
		if strings.HasSuffix(name, snapshotSuffix) && name < latest {
			_ = s.files.Remove(s.path(name))
		}
	}
}

// stream opens the stored stream of the latest snapshot, or returns nil if there is none.
func (s *snapshots) stream() (found saved, file vfs.File, err error) {
	for {
		found = s.get()
		if found.name == "" {
			return found, nil, nil
		}
		if file, err = s.openStream(found); err == nil {
			return found, file, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || s.get().name == found.name {
			return found, nil, fmt.Errorf("open latest snapshot: %w", err)
		}
	}
}

func (s *snapshots) openStream(found saved) (vfs.File, error) {
	file, err := s.files.Open(s.path(found.name))
	if err != nil {
		return nil, err
	}
	if _, err := io.CopyN(io.Discard, file, found.head); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// open returns the state of the latest snapshot, or a nil reader if there is none.
func (s *snapshots) open() (at uint64, r *snapshot.File, err error) {
	found, file, err := s.stream()
	if err != nil || file == nil {
		return 0, nil, err
	}
	r, err = snapshot.OpenFile(s.path(found.name), file, found.number)
	return found.number, r, err
}

// verify reads a whole stream and checks every block of it.
func (s *snapshots) verify(found saved) error {
	file, err := s.openStream(found)
	if err != nil {
		return err
	}
	defer file.Close()
	blocks, err := snapshot.NewReader(file, found.number)
	if err == nil {
		_, err = io.Copy(io.Discard, blocks)
	}
	return err
}

// List implements raft.SnapshotStore.
func (s *snapshots) List() ([]*raft.SnapshotMeta, error) {
	if found := s.get(); found.name != "" {
		return []*raft.SnapshotMeta{found.meta()}, nil
	}
	return nil, nil
}

func (f saved) meta() *raft.SnapshotMeta {
	return &raft.SnapshotMeta{
		Version: raft.SnapshotVersionMax, ID: f.name, Index: f.place.index, Term: f.term,
		Configuration: f.configuration, ConfigurationIndex: f.members.index, Size: f.size,
	}
}

// redundantID identifies a snapshot that was received but not stored, because this node has its content.
const redundantID = "redundant"

// Open implements raft.SnapshotStore. Raft sends the content to a follower that needs entries before the log's first.
func (s *snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	if id == redundantID {
		return &raft.SnapshotMeta{ID: id}, io.NopCloser(bytes.NewReader(nil)), nil
	}
	found, file, err := s.stream()
	if err == nil && (file == nil || found.name != id) {
		err = fmt.Errorf("snapshot %s: %w", id, fs.ErrNotExist)
		if file != nil {
			_ = file.Close()
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return found.meta(), file, nil
}

// Create implements raft.SnapshotStore. Raft calls it for snapshots that it receives; the journal's own are saved by SaveSnapshot.
func (s *snapshots) Create(_ raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	if redundant, err := s.redundant(index, term); err != nil {
		return nil, err
	} else if redundant {
		return &sink{id: redundantID}, nil
	}
	stream, in := io.Pipe()
	k := &sink{id: snapshotName(index, term), in: in, done: make(chan error, 1)}
	go func() {
		err := s.store(place{index: index, term: term}, members{configurationIndex, configuration},
			func(out io.Writer) error { _, err := io.Copy(out, stream); return err }, s.verify)
		stream.CloseWithError(cmp.Or(err, io.ErrClosedPipe))
		k.done <- err
	}()
	return k, nil
}

// sink receives a snapshot.
type sink struct {
	id   string
	in   *io.PipeWriter // nil: the snapshot is redundant
	done chan error
}

var errCancelled = errors.New("the transfer was cancelled")

func (k *sink) ID() string { return k.id }

func (k *sink) Write(p []byte) (int, error) {
	if k.in == nil {
		return len(p), nil
	}
	return k.in.Write(p)
}

func (k *sink) Close() error {
	if k.in == nil {
		return nil
	}
	_ = k.in.Close()
	return <-k.done
}

func (k *sink) Cancel() error {
	if k.in != nil {
		_ = k.in.CloseWithError(errCancelled)
		<-k.done
	}
	return nil
}
