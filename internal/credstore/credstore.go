// Package credstore finds credentials of systemd for commands, which systemd does not show them to.
package credstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Visible returns the file of a credential or, as long as this process sees none, the file in the credential store from which systemd makes it: there are credentials only while the service
// runs, and older versions of systemd hide them from ExecReload. Other paths stay as they are.
func Visible(path string) string { return visible(path, "/run/credentials", "/etc/credstore") }

func visible(path, credentials, store string) string {
	below, err := filepath.Rel(credentials, path)
	if err != nil || !filepath.IsLocal(below) {
		return path
	}
	stored := filepath.Join(store, filepath.Base(path))
	_, err = os.Lstat(path)
	if _, found := os.Lstat(stored); errors.Is(err, fs.ErrNotExist) && found == nil {
		return stored
	}
	return path
}
