package settings

import (
	"fmt"

	"github.com/musterhq/muster/internal/audit/export"
)

func (s Settings) checkAuditExport() error {
	if _, err := export.Parse(s.AuditExport); err != nil {
		return fmt.Errorf("audit-export: %w", err)
	}
	return nil
}
