package keyring

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/identity"
)

const (
	// fileFormat is the only format of this file.
	fileFormat = 1
	// fileMax limits the bytes that are read from a file: some 200,000 keys.
	fileMax = 32 << 20
)

// keyFile is the file of access keys of earlier releases, which did not keep them in the state. It never contained secrets.
type keyFile struct {
	Format int       `json:"format"`
	Keys   []fileKey `json:"keys"`
}

type fileKey struct {
	ID      string      `json:"id"`
	Role    access.Role `json:"role"`
	Account string      `json:"account"`
	Name    string      `json:"name"`
	Created time.Time   `json:"created"`
	Revoked time.Time   `json:"revoked,omitzero"`
}

// takeOver makes the cell the owner of its keys, and imports a file of an earlier release. The import is durable before
// the file is renamed; after a crash in between, the same file is recognized and only renamed. Any other file is refused: it
// could bring back keys that were revoked since. at is 0 while the service runs; see access.CreateAccessKey.
func takeOver(ctx context.Context, s store, dir string, secret identity.CellSecret, log *slog.Logger, at domain.Time) error {
	content, err := readKeyFile(dir)
	if err != nil {
		return err
	}
	digest := ""
	if content != nil {
		sum := sha256.Sum256(content)
		digest = hex.EncodeToString(sum[:])
	}
	var was access.TakenOver
	var done, fits bool
	if err := s.Read(ctx, func(v *cell.View) error {
		was, done = v.AccessKeysTakenOver()
		_, fits = secret.Fits(v.SecretStandings())
		return nil
	}); err != nil {
		return fmt.Errorf("read the access keys: %w", err)
	}
	path := filepath.Join(dir, identity.KeysFile)
	switch {
	case done && !fits:
		return fmt.Errorf("%s is not the secret that the access keys of this data directory are derived from: restore the right cell.secret from the backup; "+
			"with this one every key and token would be worthless", filepath.Join(dir, "cell.secret"))
	case done && content == nil:
		return nil
	case done && digest != was.Digest:
		return fmt.Errorf("%s is no longer read: the access keys have been part of the state since %s, and this file is not the one that was imported then. "+
			"Move it away; `muster keys create` and `muster keys revoke` change keys", path, was.At.Std().Format(time.RFC3339))
	case !done:
		keys, err := parseKeyFile(path, content)
		if err != nil {
			return err
		}
		cmd := &access.TakeOverAccessKeys{Digest: digest, Secret: secret.Check(), Keys: keys, At: at}
		err = s.Do(ctx, cmd)
		if err != nil && content == nil {
			return fmt.Errorf("begin the access keys of a new installation: %w", err)
		}
		if err != nil {
			return fmt.Errorf("import %s: %w", path, err)
		}
		if content != nil {
			log.Info("access keys were imported from the file of an earlier release", "file", path, "keys", len(keys))
		}
	}
	if content == nil {
		return nil
	}
	if err := atomicfile.Rename(path, filepath.Join(dir, identity.ImportedKeysFile)); err != nil {
		return fmt.Errorf("rename the imported access keys: %w", err)
	}
	return nil
}

// readKeyFile returns the file's content; nil if there is no file.
func readKeyFile(dir string) ([]byte, error) {
	if dir == "" {
		return nil, nil
	}
	f, err := os.Open(filepath.Join(dir, identity.KeysFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read access keys: %w; they cannot be imported without it", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, fileMax+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read access keys: %w", err)
	case len(content) > fileMax:
		return nil, fmt.Errorf("read access keys: %s has more than %d bytes", f.Name(), fileMax)
	case content == nil:
		content = []byte{}
	}
	return content, nil
}

// parseKeyFile reads the keys of a file; no content means no keys.
func parseKeyFile(path string, content []byte) ([]access.Key, error) {
	if content == nil {
		return nil, nil
	}
	var file keyFile
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields() // an unknown field may restrict the key
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("read access keys: %s: %w", path, err)
	}
	if file.Format != fileFormat {
		return nil, fmt.Errorf("read access keys: %s has format %d, this version reads format %d", path, file.Format, fileFormat)
	}
	by := access.Actor{Principal: identity.KeysFile, Door: "file"}
	keys := make([]access.Key, 0, len(file.Keys))
	for _, f := range file.Keys {
		k := access.Key{ID: f.ID, Role: f.Role, Account: f.Account, Name: f.Name, Created: domain.TimeOf(f.Created), CreatedBy: by}
		if !f.Revoked.IsZero() {
			k.Revoked, k.RevokedBy = domain.TimeOf(f.Revoked), by
		}
		if err := k.Check(); err != nil {
			return nil, fmt.Errorf("read access keys: %s: %w", path, err)
		}
		keys = append(keys, k)
	}
	return keys, nil
}
