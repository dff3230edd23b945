package objects

import (
	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/session"
)

// NewID makes the random part of an identifier.
func NewID() domain.UUID { return domain.UUID(uuid.New()) }

// ID formats an identifier; the zero identifier gives the empty string.
func ID[K domain.Kind](id domain.ID[K]) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

// GameSessionARN returns the ARN by which game servers know their game session; no game session gives the empty string.
func GameSessionARN(region, game string) string {
	if game == "" {
		return ""
	}
	return session.ID(game).ARN(region)
}

// Stamp formats an instant in UTC with milliseconds; the zero instant gives the empty string.
func Stamp(t domain.Time) string {
	if t == 0 {
		return ""
	}
	return t.Std().Format("2006-01-02T15:04:05.000Z")
}
