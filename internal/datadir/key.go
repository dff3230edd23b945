package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/embeddb"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/secretkey"
)

// secretFiles are the files with secrets from which others are derived or with which others are signed. Each is encrypted separately, so a change of
// the key may be interrupted between two of them.
var secretFiles = []string{string(Secret), trust.FileName}

// checkKey returns an error if the key cannot decrypt a secret file. It is called before anything is changed.
func checkKey(o Options) error {
	return eachSecret(o.Dir, func(name, path string, content []byte) error {
		if name == string(Secret) && slices.Contains(o.Accept, Secret) {
			return nil
		}
		err := o.Key.Check(path, content)
		if _, wrong := errors.AsType[*secretkey.Wrong](err); wrong {
			err = fmt.Errorf("%w. If a change of the key was interrupted, repeat it. If the key is lost, so is the secret: a single machine gets a new one with "+
				"`muster serve --accept-loss cell.secret`, which invalidates all access keys; remove the node of a cluster with `muster cluster remove`, and let an empty one join", err)
		}
		return err
	})
}

// encrypt encrypts secret files that are not encrypted. Without a key it does nothing.
func encrypt(o Options) error {
	if o.Key == nil {
		return nil
	}
	if err := removeLeft(o.Dir); err != nil {
		return err
	}
	return eachSecret(o.Dir, func(name, path string, content []byte) error {
		if secretkey.Sealed(content) {
			return nil
		}
		if err := atomicfile.Write(path, o.Key.Seal(name, content), 0o600); err != nil {
			return err
		}
		o.Log.Info("a secret in the data directory is now encrypted", "path", path, "secret_key", o.Key.ID())
		return nil
	})
}

// removeLeft removes the temporary files of processes that were killed while they replaced a secret. They may contain it unencrypted. The caller has
// the directory open.
func removeLeft(dir string) error {
	there, err := os.ReadDir(dir)
	for _, x := range there {
		for _, name := range secretFiles {
			if atomicfile.IsTemp(x.Name(), name) {
				err = errors.Join(err, atomicfile.Remove(filepath.Join(dir, x.Name())))
			}
		}
	}
	return err
}

// ErrNoSecrets is wrapped by the error of ChangeKey for a directory without secrets.
var ErrNoSecrets = errors.New("it has no secrets: it is not a data directory, or it is new")

// ChangeKey encrypts the secrets of a stopped service's data directory with another key than o.Key; nil stores them unencrypted. It decrypts all
// files before it changes one. To finish an interrupted change, repeat it with the same keys: each file is decrypted with whichever key fits.
// ChangeKey returns the number of files that it has written.
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
	if err := removeLeft(o.Dir); err != nil {
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

// holdStopped keeps the service from starting, by locking its archive. It fails while the service runs.
func holdStopped(o Options) (io.Closer, error) {
	d := Dir{options: o}
	dir := d.path(archiveDir)
	if there, err := embeddb.Exists(nil, dir); err != nil || !there {
		return io.NopCloser(nil), err
	}
	return embeddb.Hold(nil, dir, o.Program)
}

// eachSecret calls do for each existing secret file, until do returns an error.
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
