package settings

import (
	"fmt"

	"github.com/musterhq/muster/internal/s3"
)

func (s Settings) checkObjects() error {
	if s.Objects == "" {
		return nil
	}
	if _, err := s3.Parse(s.Objects); err != nil {
		return fmt.Errorf("objects: %w", err)
	}
	return nil
}
