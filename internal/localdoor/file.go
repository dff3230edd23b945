package localdoor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/internal/atomicfile"
)

const (
	fileName   = "service.json"
	fileFormat = 1
)

// serviceFile has the address of the service of a data directory. A file left by a crash does no harm: another program that
// now listens on the port cannot sign an answer.
type serviceFile struct {
	Format  int       `json:"format"`
	Address string    `json:"address"`
	Run     string    `json:"run"`
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
}

func writeServiceFile(dir string, f serviceFile) error {
	content, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, fileName), append(content, '\n'), 0o600)
}

func readServiceFile(dir string) (f serviceFile, err error) {
	path := filepath.Join(dir, fileName)
	content, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(content, &f); err != nil {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	if f.Format != fileFormat {
		return f, fmt.Errorf("%s has format %d, but this release reads format %d: use the muster of the running service", path, f.Format, fileFormat)
	}
	return f, nil
}
