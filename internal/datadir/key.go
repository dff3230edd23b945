package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/secretkey"
)

// secretFiles are the files with secrets from which others are derived or signed. Each is encrypted by itself, so a change of the key may end between two of them.
var secretFiles = []string{string(Secret), trust.FileName}

// checkKey reports, before anything is changed, a secret file that the key cannot open.
func checkKey(o Options) error {
	return eachSecret(o.Dir, func(name, path string, content []byte) error {
		if name == string(Secret) && slices.Contains(o.Accept, Secret) {
			return nil
		}
		err := o.Key.Check(path, content)
		if _, wrong := errors.AsType[*secretkey.Wrong](err); wrong {
			err = fmt.Errorf("%w. If a change of the key was interrupted, repeat it. If the key is lost, so is the secret: a single machine gets a new one with "+
				"`muster serve --accept-loss cell.secret`, which ends all access keys; remove the node of a cluster with `muster cluster remove`, and let an empty one join", err)
		}
		return err
	})
}

// encrypt encrypts secret files that are not encrypted. Without a key it does nothing.
func encrypt(o Options) error {
	if o.Key == nil {
		return nil
	}
	return eachSecret(o.Dir, func(name, path string, content []byte) error {
		if secretkey.Sealed(content) {
			return nil
		}
		if err := atomicfile.Write(path, o.Key.Seal(name, content), 0o600); err != nil {
			return err
		}
		o.Log.Info("a secret of the data directory is encrypted from now on", "path", path, "secret_key", o.Key.ID())
		return nil
	})
}

// ErrNoSecrets is in the error of ChangeKey for a directory without secrets.
var ErrNoSecrets = errors.New("it has no secrets: it is not a data directory, or a new one")

// ChangeKey encrypts the secrets of a data directory, whose service is stopped, with another key than o.Key; nil stores them without encryption. Before it changes a file,
// it decrypts all of them. A change that was interrupted is finished by another one with the same keys: each file is opened with the key that fits. It returns how many files it has written.
func ChangeKey(o Options, to *secretkey.Key) (changed int, err error) {
	unlock, err := identity.LockDir(o.Dir)
	if err != nil {
		return 0, err
	}
	defer unlock()
	hold, err := holdStopped(o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, hold.Close()) }()
	type file struct {
		name, path string
		clear      []byte
	}
	var files []file
	there := false
	err = eachSecret(o.Dir, func(name, path string, content []byte) error {
		there = true
		from, done := o.Key, secretkey.Sealed(content) == (to != nil) && to.Check(path, content) == nil
		if done {
			from = to
		}
		clear, err := from.Open(path, name, content)
		if err == nil && !done {
			files = append(files, file{name, path, clear})
		}
		return err
	})
	if err == nil && !there {
		err = fmt.Errorf("%s: %w", o.Dir, ErrNoSecrets)
	}
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		if err := atomicfile.Write(f.path, to.Seal(f.name, f.clear), 0o600); err != nil {
			return changed, err
		}
		changed++
	}
	return changed, nil
}

// holdStopped keeps the service from starting, and fails while it runs: it has its archive open.
func holdStopped(o Options) (io.Closer, error) {
	d := Dir{options: o}
	dir := d.path(archiveDir)
	if there, err := embeddb.Exists(nil, dir); err != nil || !there {
		return io.NopCloser(nil), err
	}
	return embeddb.Hold(nil, dir, o.Program)
}

// eachSecret calls do with each secret file that is there, until an error.
func eachSecret(dir string, do func(name, path string, content []byte) error) error {
	d := Dir{options: Options{Dir: dir}}
	for _, name := range secretFiles {
		path := d.path(name)
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := do(name, path, content); err != nil {
			return err
		}
	}
	return nil
}
