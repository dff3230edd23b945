package identity

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/atomicfile"
	"github.com/musterhq/muster/internal/secretkey"
)

// The file cell.secret has a magic, the id of the installation, the secret, and the beginning of the SHA-256 of all that. Earlier
// releases stored only the secret. See docs/formats/identity.md.
const (
	secretMagic    = "MUSTSEC2"
	secretSumSize  = 8
	secretFileSize = len(secretMagic) + len(uuid.UUID{}) + secretSize + secretSumSize

	// generationsMagic begins a file that contains generations instead of one secret.
	generationsMagic = "MUSTSEC3"
)

// DamagedSecret is the error of a cell.secret whose content was not written by Muster.
type DamagedSecret struct {
	Path, Reason string
}

func (e *DamagedSecret) Error() string {
	return fmt.Sprintf("%s %s: restore it from a backup", e.Path, e.Reason)
}

// NewCellSecret returns a random secret.
func NewCellSecret() (s CellSecret) {
	rand.Read(s.key[:]) // never fails: since Go 1.24 it ends the program instead
	return s
}

// ReadCellSecret reads the secret of a data directory. key decrypts it, if it is encrypted.
func ReadCellSecret(dir string, key *secretkey.Key) (CellSecret, error) {
	secret, _, err := ReadSecretFile(dir, key)
	return secret, err
}

// ReadSecretFile reads the secret of a data directory and the id of its installation, which is zero in a file of an earlier
// release. For a damaged file the error is a *DamagedSecret, for a file that is encrypted with another key a *secretkey.Wrong.
func ReadSecretFile(dir string, key *secretkey.Key) (secret CellSecret, installation uuid.UUID, err error) {
	path := filepath.Join(dir, secretFile)
	content, err := os.ReadFile(path)
	if err != nil {
		return secret, installation, fmt.Errorf("read cell secret: %w", err)
	}
	if content, err = key.Open(path, secretFile, content); errors.Is(err, secretkey.ErrDamaged) {
		return secret, installation, &DamagedSecret{path, secretkey.ErrDamaged.Error()}
	} else if err != nil {
		return secret, installation, err
	}
	switch rest := content[min(len(secretMagic), len(content)):]; {
	case len(content) == secretSize:
		return CellSecret{key: [secretSize]byte(content)}, uuid.Nil, nil
	case bytes.HasPrefix(content, []byte(generationsMagic)) && len(content) > secretFileSize:
		if [secretSumSize]byte(content[len(content)-secretSumSize:]) != secretSum(content) {
			return secret, installation, &DamagedSecret{path, "is damaged: its checksum does not match"}
		}
		x, err := readGenerations(content[len(generationsMagic)+len(installation) : len(content)-secretSumSize])
		if err != nil {
			return secret, installation, &DamagedSecret{path, "is damaged: " + err.Error()}
		}
		copy(installation[:], rest)
		return x.secret(), installation, nil
	case len(content) != secretFileSize:
		return secret, installation, &DamagedSecret{path, fmt.Sprintf("is damaged: it has %d bytes, want %d", len(content), secretFileSize)}
	case string(content[:len(secretMagic)]) != secretMagic, [secretSumSize]byte(content[secretFileSize-secretSumSize:]) != secretSum(content):
		return secret, installation, &DamagedSecret{path, "is damaged: its checksum does not match"}
	default:
		copy(installation[:], rest)
		copy(secret.key[:], rest[len(installation):])
		return secret, installation, nil
	}
}

func secretSum(content []byte) [secretSumSize]byte {
	sum := sha256.Sum256(content[:len(content)-secretSumSize])
	return [secretSumSize]byte(sum[:])
}

// Write stores the secret with all its generations in the data directory of an installation, encrypted with the key.
func (s CellSecret) Write(dir string, installation uuid.UUID, key *secretkey.Key) error {
	return s.generations().write(dir, installation, key)
}

func (x *generations) write(dir string, installation uuid.UUID, key *secretkey.Key) error {
	var content []byte
	if x.single() {
		content = append(append(append(content, secretMagic...), installation[:]...), x.signing.secret.key[:]...)
	} else {
		content = x.append(append(append(content, generationsMagic...), installation[:]...))
	}
	sum := sha256.Sum256(content)
	content = append(content, sum[:secretSumSize]...)
	if err := atomicfile.Write(filepath.Join(dir, secretFile), key.Seal(secretFile, content), 0o600); err != nil {
		return fmt.Errorf("write cell secret: %w", err)
	}
	return nil
}

// OpenCellSecret reads the secret from a directory, and creates one for a new installation if there is none. It is for callers that
// need only the secret; package datadir opens a whole data directory.
func OpenCellSecret(dir string) (CellSecret, error) {
	secret, err := ReadCellSecret(dir, nil)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if err := atomicfile.MakeDir(dir, 0o700); err != nil {
		return CellSecret{}, fmt.Errorf("make cell secret: %w", err)
	}
	secret = NewCellSecret()
	return secret, secret.Write(dir, uuid.New(), nil)
}

// HasKeyFile reports whether the directory contains the access key file of an earlier release.
func HasKeyFile(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, KeysFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// CheckNoKeyFiles refuses a directory with access keys but without the secret that they are derived from: it is a partly
// restored backup, and a new secret would change the secret of every key.
func CheckNoKeyFiles(dir string) error {
	for _, file := range []string{KeysFile, ImportedKeysFile} {
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
			return fmt.Errorf("%s holds access keys, but the secret they are derived from, %s, is missing: restore it, or remove %s to start with new keys",
				file, filepath.Join(dir, secretFile), file)
		}
	}
	return nil
}
