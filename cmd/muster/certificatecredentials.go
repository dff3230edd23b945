package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/musterhq/muster/internal/clientcert"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/terminal"
)

// certificateFlags select credentials for a client certificate.
type certificateFlags struct {
	Certificate string        `placeholder:"FILE" help:"Exchange a client certificate in PEM, followed by its intermediate certificates, for credentials, instead of a sign-in."`
	Key         string        `placeholder:"FILE" help:"Key of the certificate in PEM."`
	Authority   string        `placeholder:"NAME" help:"Authority of the certificate, by its name in the file of --client-certificates of the service."`
	Role        identity.Role `placeholder:"admin|backend|client|readonly" help:"Role of the credentials."`
	SessionName string        `placeholder:"TEXT" help:"Name of the session in the audit log. Default: the serial number of the certificate."`
	Duration    time.Duration `placeholder:"TIME" help:"How long the credentials are valid, from 15m to the rule's maximum. Default: 1h."`
	Server      string        `placeholder:"URL" help:"URL of the service. Default: AWS_ENDPOINT_URL."`
}

func (f *certificateFlags) check() error {
	if f.Certificate == "" {
		if f.Key+f.Authority+f.SessionName+f.Server != "" || f.Role != 0 || f.Duration != 0 {
			return errors.New("--key, --authority, --role, --session-name, --duration and --server go with --certificate")
		}
		return nil
	}
	if f.Key == "" || f.Authority == "" || f.Role == 0 {
		return errors.New("--certificate: want --key, --authority and --role beside it")
	}
	return nil
}

// sessionAnswerMax limits the size of the service's answer, in bytes.
const sessionAnswerMax = 64 << 10

// exchange exchanges the certificate for temporary credentials.
func (f *certificateFlags) exchange(ctx context.Context, env environment) (c processCredentials, err error) {
	pair, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
	if err != nil {
		return c, err
	}
	var chain []*x509.Certificate
	for _, der := range pair.Certificate {
		x, err := x509.ParseCertificate(der)
		if err != nil {
			return c, fmt.Errorf("%s: %w", f.Certificate, err)
		}
		chain = append(chain, x)
	}
	server := cmp.Or(f.Server, env["AWS_ENDPOINT_URL"])
	if server == "" {
		return c, errors.New("want the URL of the service: --server, or AWS_ENDPOINT_URL in the environment")
	}
	endpoint, err := apiEndpoint("", server)
	if err != nil {
		return c, err
	}
	region := signingRegion(env)
	anywhere := "arn:aws:rolesanywhere:" + region + ":" + identity.DefaultAccount + ":"
	body, err := json.Marshal(map[string]any{
		"trustAnchorArn": anywhere + "trust-anchor/" + f.Authority, "profileArn": anywhere + "profile/default", "roleArn": "arn:aws:iam::" + identity.DefaultAccount + ":role/" + f.Role.String(),
		"durationSeconds": int(f.Duration / time.Second), "roleSessionName": f.SessionName,
	})
	if err != nil {
		return c, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint+clientcert.Path, bytes.NewReader(body))
	if err != nil {
		return c, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", userAgent)
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return c, fmt.Errorf("%s: the key cannot sign", f.Key)
	}
	if err := clientcert.Sign(r, body, signer, chain, region, time.Now()); err != nil {
		return c, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return c, noService(endpoint, err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, sessionAnswerMax))
	if err != nil {
		return c, err
	}
	var got struct {
		Message       string
		CredentialSet []struct {
			Credentials struct{ AccessKeyID, SecretAccessKey, SessionToken, Expiration string }
		}
	}
	if err := json.Unmarshal(content, &got); err != nil || answer.StatusCode == http.StatusCreated && len(got.CredentialSet) == 0 {
		return c, fmt.Errorf("%s answers %s with something else than credentials", endpoint, answer.Status)
	}
	if answer.StatusCode != http.StatusCreated {
		return c, fmt.Errorf("%s refuses the certificate: %s", endpoint, terminal.Printable(got.Message))
	}
	x := got.CredentialSet[0].Credentials
	return processCredentials{1, x.AccessKeyID, x.SecretAccessKey, x.SessionToken, x.Expiration}, nil
}
