package raft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/journal"
)

func (s *store) trimmed() (trimmed, error) {
	value, err := s.get(trimmedKey, 16)
	if err != nil || value == nil {
		return trimmed{first: 1}, err
	}
	return parseTrimmed(value)
}

func (s *store) readOrigin() error {
	value, err := s.get(originKey, 16)
	if err != nil {
		return err
	}
	s.origin.Store(parseOrigin(value))
	return nil
}

func (s *store) installation() (id uuid.UUID, err error) {
	value, err := s.get(ownerKey, len(id))
	if err == nil && value != nil {
		id = uuid.UUID(value)
	}
	return id, err
}

func (s *store) setInstallation(id uuid.UUID) error {
	return s.put(ownerKey, id[:])
}

func (s *store) put(key, value []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.commit(func(b embeddb.Batch) error { return b.Set(key, value, nil) }); err != nil {
		return s.failed(err)
	}
	s.note()
	return nil
}

// get returns a copy of the value, or nil if there is none. size is its expected size; 0 for any.
func (s *store) get(key []byte, size int) ([]byte, error) {
	done, err := s.db.Use()
	if err != nil {
		return nil, err
	}
	defer done()
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, s.explain(err)
	}
	defer closer.Close()
	if size != 0 && len(value) != size {
		return nil, &journal.Damaged{File: "key " + string(key), Err: fmt.Errorf("%d bytes, %d expected", len(value), size)}
	}
	return append([]byte{}, value...), nil
}

// Set implements raft.StableStore. Each value is preceded by a checksum over key and value.
func (s *store) Set(key, value []byte) error {
	stored := binary.LittleEndian.AppendUint32(nil, stableSum(key, value))
	return s.put(stableKey(key), append(stored, value...))
}

// Get implements raft.StableStore.
func (s *store) Get(key []byte) ([]byte, error) {
	stored, err := s.get(stableKey(key), 0)
	if err != nil || stored == nil {
		return nil, err
	}
	if len(stored) < checksumSize || binary.LittleEndian.Uint32(stored) != stableSum(key, stored[checksumSize:]) {
		return nil, &journal.Damaged{File: "key " + string(key), Err: errChecksum}
	}
	return stored[checksumSize:], nil
}

func stableSum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// SetUint64 implements raft.StableStore. Raft panics if it cannot write its term, so on failure SetUint64 ends the goroutine.
func (s *store) SetUint64(key []byte, value uint64) error {
	if err := s.Set(key, binary.LittleEndian.AppendUint64(nil, value)); err != nil {
		return s.end(err)
	}
	return nil
}

// GetUint64 implements raft.StableStore.
func (s *store) GetUint64(key []byte) (uint64, error) {
	value, err := s.Get(key)
	if err != nil || value == nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, &journal.Damaged{File: "key " + string(key), Err: fmt.Errorf("%d bytes, 8 expected", len(value))}
	}
	return binary.LittleEndian.Uint64(value), nil
}
