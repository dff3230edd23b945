package service

import (
	"fmt"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/clientcert"
	"github.com/musterhq/muster/internal/gamelift"
	"github.com/musterhq/muster/internal/sts"
	"github.com/musterhq/muster/internal/webidentity"
)

// newSTS makes the door that issues temporary credentials, also to machines that prove who they are with a token.
func (x *Service) newSTS(handler *gamelift.Handler, calls *callstats.Calls) (*sts.Door, error) {
	c := sts.Config{Keys: x.keys, Engine: x.engine, Signed: handler.Signed, Unsigned: handler.Unsigned, Private: x.private, Signins: x.signins.Door("web_identity"), CertificateSignins: x.signins.Door("client_certificate"),
		Audit: x.audit, Calls: calls, Log: x.log}
	if path := x.settings.WebIdentities; path != "" {
		issuers, err := webidentity.Open(path, x.log)
		if err != nil {
			return nil, fmt.Errorf("web-identities: %w", err)
		}
		c.Machines = issuers
	}
	if path := x.settings.ClientCertificates; path != "" {
		authorities, err := clientcert.Open(path, x.log)
		if err != nil {
			return nil, fmt.Errorf("client-certificates: %w", err)
		}
		c.Certificates = authorities
	}
	return sts.NewDoor(c), nil
}
