package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/waittest"
)

// One port for both: the C++ and Unreal SDKs use TLS 1.2 for every URL and verify no certificate; clients that trust the authority
// of --dev can also use the API over https.
func TestTLSOnTheSamePort(t *testing.T) {
	t.Parallel()
	p := startService(t).prepare()
	c, err := linkclient.Dial(t.Context(), linkclient.Options{
		URL: "wss://" + p.address + "/", Process: "unreal", Compute: p.compute, Fleet: p.fleet, Token: p.token,
		SDKLanguage: "Cpp", SDKVersion: "5.4.0",
		TLS: &tls.Config{MaxVersion: tls.VersionTLS12, InsecureSkipVerify: true, ServerName: "127.0.0.1"},
	})
	must(t, err)
	defer c.Drop()
	must(t, c.Activate(t.Context(), 7777))
	must(t, c.Heartbeat(t.Context(), true))

	pem, err := os.ReadFile(p.authority())
	must(t, err)
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(pem) {
		t.Fatalf("muster ca prints no certificate: %s", pem)
	}
	for what, roots := range map[string]*x509.CertPool{"trusted": trusted, "not trusted": x509.NewCertPool()} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
		resp, err := client.Get("https://" + p.address + "/healthz")
		if err == nil {
			resp.Body.Close()
		}
		if (err == nil) != (what == "trusted") {
			t.Errorf("%s: got %v", what, err)
		}
		client.CloseIdleConnections()
	}
}

// SDKs that were started with an access key send their first signature again when they reconnect, hours later. A
// known process may do so, and no other.
func TestOldSignatureOfAReconnect(t *testing.T) {
	t.Parallel()
	s, _ := startProduction(t)
	id, secret := s.key("admin")
	api := gamelift.New(gamelift.Options{Region: region, BaseEndpoint: aws.String(s.url()),
		Credentials: credentials.NewStaticCredentialsProvider(id, secret, "")})
	ctx := t.Context()
	location, compute := "custom-home", "DesktopPC"
	waittest.Until(t, "the new key to be known", func() bool {
		_, err := api.CreateLocation(ctx, &gamelift.CreateLocationInput{LocationName: &location})
		return err == nil
	})
	fleet, err := api.CreateFleet(ctx, &gamelift.CreateFleetInput{Name: aws.String("dev"), ComputeType: types.ComputeTypeAnywhere,
		Locations: []types.LocationConfiguration{{Location: &location}}})
	must(t, err)
	_, err = api.RegisterCompute(ctx, &gamelift.RegisterComputeInput{FleetId: fleet.FleetAttributes.FleetId, ComputeName: &compute,
		IpAddress: aws.String("127.0.0.1"), Location: &location})
	must(t, err)

	connect := func(process, secret string, at time.Time) error {
		opt := linkclient.Options{URL: s.ws(), Process: process, Compute: compute, Fleet: *fleet.FleetAttributes.FleetId}
		opt.Query = linkclient.SigV4Query(opt, id, secret, region, at)
		c, err := linkclient.Dial(ctx, opt)
		if err == nil {
			err = c.Activate(ctx, 7777)
			c.Drop()
		}
		return err
	}
	now := time.Now().UTC()
	old := now.Add(-3 * time.Hour)
	must(t, connect("known", secret, now))
	if err := connect("known", secret, now.Add(-20*time.Minute)); err != nil {
		t.Errorf("an older signature of a known process: %v", err)
	}
	for what, err := range map[string]error{
		"an old signature of a known process":     connect("known", secret, old),
		"an old signature of a new process":       connect("unknown", secret, old),
		"a wrong signature of a known process":    connect("known", secret+"x", now),
		"a wrong signature of an unknown process": connect("unknown", secret+"x", now),
	} {
		if refusal, ok := errors.AsType[*linkclient.RefusedError](err); !ok || refusal.Status != 403 {
			t.Errorf("%s: got %v, want 403", what, err)
		}
	}
}
