package service

import (
	"fmt"
	"log/slog"

	"github.com/musterhq/muster/internal/callstats"
	"github.com/musterhq/muster/internal/clientcert"
	"github.com/musterhq/muster/internal/settings"
	"github.com/musterhq/muster/internal/sts"
	"github.com/musterhq/muster/internal/webidentity"
)

// newSTS returns the door that issues temporary credentials, also to machines that authenticate with a token.
func (x *Service) newSTS(calls *callstats.Calls) (*sts.Door, error) {
	c := sts.Config{Keys: x.keys, Engine: x.engine, Signed: x.api.Signed, Unsigned: x.api.Unsigned, Private: x.private, Signins: x.signins.Door("web_identity"), CertificateSignins: x.signins.Door("client_certificate"),
		Audit: x.audit, Calls: calls, Log: x.log}
	issuers, err := openIssuers(x.settings, x.log)
	if err != nil {
		return nil, err
	}
	x.machines.Set(issuers)
	c.Machines = func() sts.Verifier {
		if issuers := x.machines.Get(); issuers != nil {
			return issuers
		}
		return nil
	}
	backends, err := openCertificates(x.settings, x.log)
	if err != nil {
		return nil, err
	}
	x.backends.Set(backends)
	c.Certificates = func() sts.CertificateVerifier {
		if authorities := x.backends.Get(); authorities != nil {
			return authorities
		}
		return nil
	}
	return sts.NewDoor(c), nil
}

func openIssuers(s settings.Settings, log *slog.Logger) (*webidentity.Issuers, error) {
	if s.WebIdentities == "" {
		return nil, nil
	}
	issuers, err := webidentity.Open(s.WebIdentities, log)
	if err != nil {
		return nil, fmt.Errorf("web-identities: %w", err)
	}
	return issuers, nil
}

func openCertificates(s settings.Settings, log *slog.Logger) (*clientcert.Authorities, error) {
	if s.ClientCertificates == "" {
		return nil, nil
	}
	authorities, err := clientcert.Open(s.ClientCertificates, log)
	if err != nil {
		return nil, fmt.Errorf("client-certificates: %w", err)
	}
	return authorities, nil
}
