package settings

import (
	"fmt"

	"github.com/musterhq/muster/internal/tracing"
)

func (s Settings) checkOTLP() error {
	if s.OTLPEndpoint == "" {
		return nil
	}
	if err := tracing.CheckEndpoint(s.OTLPEndpoint); err != nil {
		return fmt.Errorf("otlp-endpoint: %w", err)
	}
	return nil
}
