package tokenkeys

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	fileRecheck = 5 * time.Second // how often, at most, the file is looked at
	fileBytes   = 1 << 20
	rsaBitsMin  = 2048
)

// Key is a public key, and the one algorithm that it is for.
type Key struct {
	jose.JSONWebKey
	Signs jose.SignatureAlgorithm
}

// File has the public keys in a file, a JWK set. A changed file is read again.
type File struct {
	path, kind string
	log        *slog.Logger

	mu      sync.Mutex
	keys    map[string]Key
	checked time.Time
	version fileVersion
}

type fileVersion struct {
	modified time.Time
	size     int64
}

// OpenFile reads a file. The kind is what its keys are called in errors and in the log. A key that cannot be used is an error here and now.
func OpenFile(path, kind string, log *slog.Logger) (*File, error) {
	f := &File{path: path, kind: kind, log: log, checked: time.Now()}
	version, err := f.look()
	if err == nil {
		err = f.load(version)
	}
	return f, err
}

func (f *File) look() (fileVersion, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return fileVersion{}, fmt.Errorf("%s: %w", f.kind, err)
	}
	return fileVersion{info.ModTime(), info.Size()}, nil
}

func (f *File) load(version fileVersion) error {
	if version.size > fileBytes {
		return fmt.Errorf("%s %s: %d bytes, want at most %d", f.kind, f.path, version.size, fileBytes)
	}
	content, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("%s: %w", f.kind, err)
	}
	keys, err := readSet(content)
	if err != nil {
		return fmt.Errorf("%s %s: %w", f.kind, f.path, err)
	}
	f.keys, f.version = keys, version
	return nil
}

func readSet(content []byte) (map[string]Key, error) {
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(content, &set); err != nil {
		return nil, fmt.Errorf("want a JWK set, {\"keys\": […]}: %w", err)
	}
	if len(set.Keys) == 0 {
		return nil, errors.New("want a JWK set with at least one key")
	}
	keys := map[string]Key{}
	for i, key := range set.Keys {
		algorithm, err := AlgorithmOf(key)
		if err == nil && keys[key.KeyID].Key != nil {
			err = fmt.Errorf("kid %q is given twice", key.KeyID)
		}
		if err != nil {
			return nil, fmt.Errorf("keys[%d]: %w", i, err)
		}
		keys[key.KeyID] = Key{key, algorithm}
	}
	return keys, nil
}

// AlgorithmOf is the one algorithm that a key is for. It follows from the key, so no token can choose another.
func AlgorithmOf(key jose.JSONWebKey) (algorithm jose.SignatureAlgorithm, err error) {
	switch x := key.Key.(type) {
	case ed25519.PublicKey:
		algorithm = jose.EdDSA
	case *ecdsa.PublicKey:
		if x.Curve != elliptic.P256() {
			return "", fmt.Errorf("crv %s: want P-256", x.Curve.Params().Name)
		}
		algorithm = jose.ES256
	case *rsa.PublicKey:
		if x.N.BitLen() < rsaBitsMin {
			return "", fmt.Errorf("n has %d bits, want at least %d", x.N.BitLen(), rsaBitsMin)
		}
		algorithm = jose.RS256
	default:
		return "", errors.New("want a public key for EdDSA, ES256 or RS256: a private or symmetric one does not belong here")
	}
	switch {
	case key.KeyID == "":
		return "", errors.New("kid is missing: tokens name their key by it")
	case key.Algorithm != "" && key.Algorithm != string(algorithm):
		return "", fmt.Errorf("alg %s: want %s for such a key, or none", key.Algorithm, algorithm)
	case key.Use != "" && key.Use != "sig":
		return "", fmt.Errorf("use %s: want sig, or none", key.Use)
	}
	return algorithm, nil
}

// Find returns a key by its id. A changed file that is invalid leaves the old keys in force.
func (f *File) Find(keyID string) (Key, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.checked) >= fileRecheck {
		f.checked = now
		version, err := f.look()
		if err == nil && version != f.version {
			if err = f.load(version); err == nil {
				f.log.Info(f.kind+" read again", "file", f.path, "keys", len(f.keys))
			}
		}
		if err != nil {
			f.log.Error("the changed "+f.kind+" cannot be used: the previous ones stay in force", "error", err)
		}
	}
	key, ok := f.keys[keyID]
	return key, ok
}
