package trust

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/secretkey"
)

// FileName is the authority's file. A single file contains everything, so that no crash can leave a certificate with another
// certificate's key.
const FileName = "cluster-authority.pem"

var (
	// ErrMissing is returned by Load if there is no authority.
	ErrMissing = errors.New("the cluster's authority is missing")
	// ErrExists is returned by Create if there already is an authority: a second one would split the cluster.
	ErrExists = errors.New("the cluster's authority exists already")
)

// Damaged is the error of an authority that cannot be read.
type Damaged struct {
	Path string // empty: it did not come from a file
	Err  error
}

func (e *Damaged) Error() string {
	return fmt.Sprintf("the cluster's authority %s is damaged: %v; copy the file from another member", cmp.Or(e.Path, received), e.Err)
}

func (e *Damaged) Unwrap() error { return e.Err }

// Foreign is the error of an authority that belongs to another cluster.
type Foreign struct {
	Path          string // empty: it did not come from a file
	Cluster, Want uuid.UUID
}

func (e *Foreign) Error() string {
	return fmt.Sprintf("the authority %s is that of cluster %s; want that of cluster %s", cmp.Or(e.Path, received), e.Cluster, e.Want)
}

// received replaces the path for data that did not come from a file.
const received = "from the peer"

// Create creates the authority of a new cluster and stores it in a directory, encrypted with the key.
func Create(dir string, cluster uuid.UUID, now time.Time, key *secretkey.Key) (*Authority, error) {
	if _, err := os.Lstat(filepath.Join(dir, FileName)); err == nil {
		return nil, fmt.Errorf("%w in %s", ErrExists, dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	a, err := New(cluster, now)
	if err != nil {
		return nil, err
	}
	return a, a.Save(dir, key)
}

// Save stores the authority in a directory, in place of an earlier one, encrypted with the key.
func (a *Authority) Save(dir string, key *secretkey.Key) error {
	return atomicfile.Write(filepath.Join(dir, FileName), key.Seal(FileName, a.PEM()), 0o600)
}

// Delete removes the authority from the directory of a node that has left its cluster.
func Delete(dir string) error {
	err := atomicfile.Remove(filepath.Join(dir, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Load reads the authority of a cluster from a directory. The error is ErrMissing, a *Damaged, a *Foreign or a *secretkey.Wrong.
func Load(dir string, cluster uuid.UUID, key *secretkey.Key) (*Authority, error) {
	path := filepath.Join(dir, FileName)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", ErrMissing, err)
	} else if err != nil {
		return nil, fmt.Errorf("read the cluster's authority: %w", err)
	}
	if content, err = key.Open(path, FileName, content); errors.Is(err, secretkey.ErrDamaged) {
		return nil, &Damaged{Path: path, Err: errors.New("it cannot be decrypted, although its key is the right one")}
	} else if err != nil {
		return nil, err
	}
	a, err := Parse(content, cluster)
	if damaged, ok := errors.AsType[*Damaged](err); ok {
		damaged.Path = path
	} else if foreign, ok := errors.AsType[*Foreign](err); ok {
		foreign.Path = path
	}
	return a, err
}

// PEM returns the whole authority, including keys: each certificate followed by its key, the signing one first.
func (a *Authority) PEM() []byte {
	var content bytes.Buffer
	for _, p := range a.pairs {
		key, err := x509.MarshalPKCS8PrivateKey(p.key)
		if err == nil {
			err = errors.Join(
				pem.Encode(&content, &pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw}),
				pem.Encode(&content, &pem.Block{Type: "PRIVATE KEY", Bytes: key}))
		}
		if err != nil {
			panic(err) // cannot happen: a P-256 key can always be encoded, and a buffer accepts all writes
		}
	}
	return content.Bytes()
}

// Parse reads what PEM has written. Its error is a *Damaged or a *Foreign.
func Parse(content []byte, cluster uuid.UUID) (*Authority, error) {
	var pairs []pair
	for rest := content; len(rest) > 0 && len(pairs) < 3; {
		p, after, err := parsePair(rest)
		if err != nil {
			return nil, &Damaged{Err: fmt.Errorf("certificate %d: %w", len(pairs)+1, err)}
		}
		named, node, err := namesOf(p.cert)
		if err == nil && node != "" {
			err = fmt.Errorf("it is that of node %s", node)
		}
		if err != nil {
			return nil, &Damaged{Err: fmt.Errorf("certificate %d: %w", len(pairs)+1, err)}
		}
		if named != cluster {
			return nil, &Foreign{Cluster: named, Want: cluster}
		}
		pairs, rest = append(pairs, p), after
	}
	switch {
	case len(pairs) < 1 || len(pairs) > 2:
		return nil, &Damaged{Err: fmt.Errorf("%d certificates; want one or two", len(pairs))}
	case len(pairs) == 2 && pairs[0].cert.Equal(pairs[1].cert):
		return nil, &Damaged{Err: errors.New("both certificates are the same")}
	}
	a := newAuthority(cluster, pairs...)
	if !bytes.Equal(a.PEM(), content) { // pem.Decode silently skips what it does not understand
		return nil, &Damaged{Err: errors.New("there is something other than certificates and keys")}
	}
	return a, nil
}

func parsePair(content []byte) (p pair, rest []byte, err error) {
	certBlock, rest := pem.Decode(content)
	if certBlock == nil || certBlock.Type != "CERTIFICATE" {
		return pair{}, nil, errors.New("want a certificate in PEM")
	}
	keyBlock, rest := pem.Decode(rest)
	if keyBlock == nil || keyBlock.Type != "PRIVATE KEY" {
		return pair{}, nil, errors.New("want its private key in PEM")
	}
	if p.cert, err = x509.ParseCertificate(certBlock.Bytes); err != nil {
		return pair{}, nil, err
	}
	if err := p.cert.CheckSignatureFrom(p.cert); err != nil {
		return pair{}, nil, fmt.Errorf("it is not an authority's: %w", err)
	}
	key, err := x509.ParsePKCS8PrivateKey(keyBlock.Bytes)
	if err != nil {
		return pair{}, nil, err
	}
	var ok bool
	if p.key, ok = key.(*ecdsa.PrivateKey); !ok || p.key.Curve != elliptic.P256() {
		return pair{}, nil, fmt.Errorf("the key is a %T; want ECDSA P-256", key)
	}
	if !p.key.PublicKey.Equal(p.cert.PublicKey) {
		return pair{}, nil, errors.New("the key belongs to another certificate")
	}
	return p, rest, nil
}
