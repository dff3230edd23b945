package service

import (
	"fmt"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/gamelift"
	"github.com/musterhq/muster/internal/sts"
	"github.com/musterhq/muster/internal/webidentity"
)

// newSTS makes the door that issues temporary credentials, also to machines that prove who they are with a token.
func (x *Service) newSTS(handler *gamelift.Handler, calls *callstats.Calls) (*sts.Door, error) {
	c := sts.Config{Keys: x.keys, Engine: x.engine, Signed: handler.Signed, Unsigned: handler.Unsigned, Private: x.private, Signins: x.signins.Door("web_identity"),
		Audit: x.audit, Calls: calls, Log: x.log}
	if path := x.settings.WebIdentities; path != "" {
		issuers, err := webidentity.Open(path, x.log)
		if err != nil {
			return nil, fmt.Errorf("web-identities: %w", err)
		}
		c.Machines = issuers
	}
	return sts.NewDoor(c), nil
}
