package secretkey

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/credstore"
	"github.com/musterhq/muster/internal/fileowner"
)

// fileMax is more than the size of a file with a key and a line break, in bytes.
const fileMax = 256

// refusedBits are the mode bits that a key file must not have. A group may read it: credentials of systemd and secrets of Kubernetes have mode 0440, with an access
// control list or a group that contains only the service.
const refusedBits = 0o027

// Create writes a new random key to a file that does not exist yet, with mode 0600, and returns the key.
func Create(path string) (*Key, error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("%s exists already, and may be the only copy of a key: choose another name", path)
		}
		return nil, err
	}
	var secret [keySize]byte
	rand.Read(secret[:]) // never fails: since Go 1.24 it ends the program instead
	if err := atomicfile.Write(path, []byte(hex.EncodeToString(secret[:])+"\n"), 0o600); err != nil {
		return nil, err
	}
	return newKey(path, secret), nil
}

// Read reads the key that a setting names: a file, env:NAME for an environment variable, or command:PROGRAM ARGUMENTS for the output of a program. An empty text means no
// key. The file or program must be outside the data directory, because a copy of the directory would contain the key. Other users of the machine must not be able to
// read the file or to replace the file or program. No error contains any part of the key.
func Read(source, dataDir string) (k *Key, err error) {
	switch kind, rest, _ := strings.Cut(source, ":"); {
	case source == "":
		return nil, nil
	case kind == "env":
		k, err = fromEnvironment(rest)
	case kind == "command":
		k, err = fromCommand(rest, dataDir)
	default:
		k, err = fromFile(source, dataDir)
	}
	if err != nil {
		return nil, fmt.Errorf("secret-key-file: %w", err)
	}
	return k, nil
}

func fromFile(path, dataDir string) (*Key, error) {
	path = credstore.Visible(path)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return nil, fmt.Errorf("%s is a directory; want a file of `muster secret-key create`", path)
	case runtime.GOOS != "windows" && mode.Perm()&refusedBits != 0:
		return nil, fmt.Errorf("%s has mode %#o: other users of this machine can read or replace the key; want chmod 600 %[1]s", path, mode.Perm())
	}
	if err := fileowner.Check(path, info); err != nil {
		return nil, err
	}
	if err := checkOutside(path, dataDir); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, fileMax+1))
	if err != nil {
		return nil, err
	}
	return parse(path, content)
}

// checkOutside refuses a key in the directory that it protects. Links are followed.
func checkOutside(path, dir string) error {
	if dir == "" {
		return nil
	}
	inside, err := resolved(path)
	if err != nil {
		return err
	}
	around, err := resolved(dir)
	if errors.Is(err, fs.ErrNotExist) { // the key cannot be in a directory that does not exist
		return nil
	}
	if err != nil {
		return err
	}
	if from, err := filepath.Rel(around, inside); err == nil && from != ".." && !strings.HasPrefix(from, ".."+string(filepath.Separator)) {
		return fmt.Errorf("%s is in the data directory %s: a copy of the directory would have the key; want a file outside of it", path, dir)
	}
	return nil
}

func resolved(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}
