package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/internal/builddoor"
	"github.com/musterhq/muster/internal/buildfiles"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/plural"
)

type buildCommand struct {
	Push buildPushCommand `cmd:"" help:"Upload a directory as a build, without AWS tools; sends only content that the service does not have."`
	List buildListCommand `cmd:"" help:"List the builds."`
}

// api returns a client of the service's API.
func (f *serviceFlags) api(ctx context.Context, env environment, may identity.Roles, reason string) (*gamelift.Client, remoteService, error) {
	service, err := f.reach(ctx, env, may)
	if err != nil {
		return nil, service, err
	}
	return gamelift.New(gamelift.Options{
		BaseEndpoint: &service.endpoint, Region: service.region, Credentials: service.credentials(),
		APIOptions: withReason(reason),
	}), service, nil
}

type buildListCommand struct{ serviceFlags }

func (c *buildListCommand) Run(ctx context.Context, stdout io.Writer, env environment) error {
	api, service, err := c.api(ctx, env, identity.MayLook, "")
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "BUILD\tNAME\tVERSION\tSTATUS\tMIB\tCREATED")
	for pages := gamelift.NewListBuildsPaginator(api, &gamelift.ListBuildsInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return noService(service.endpoint, err)
		}
		for _, b := range page.Builds {
			size := "unknown"
			if b.SizeOnDisk != nil {
				size = fmt.Sprintf("%.1f", float64(*b.SizeOnDisk)/(1<<20))
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", *b.BuildId, printable(aws.ToString(b.Name)), printable(aws.ToString(b.Version)), b.Status, size, b.CreationTime.UTC().Format(time.RFC3339))
		}
	}
	return table.Flush()
}

type buildPushCommand struct {
	serviceFlags
	reasonFlag
	Name            string `placeholder:"NAME" help:"Name of the build."`
	Version         string `placeholder:"VERSION" help:"Version of the build."`
	OperatingSystem string `name:"operating-system" placeholder:"SYSTEM" default:"AMAZON_LINUX_2023" help:"Operating system as the API names it, such as AMAZON_LINUX_2023 or WINDOWS_2022."`
	ServerSDK       string `name:"server-sdk-version" placeholder:"VERSION" default:"5.4.0" help:"Version of the server SDK in the game server."`

	Patience time.Duration `default:"15m" help:"How long to retry while the service does not answer, once it has accepted the build. The push continues where it was."`

	Dir string `arg:"" help:"Directory with the files of the game server." type:"existingdir"`
}

// pushedAtATime is how many parts are sent concurrently.
const pushedAtATime = 4

func (c *buildPushCommand) Run(ctx context.Context, stdout io.Writer, env environment) error {
	api, service, err := c.api(ctx, env, identity.MayAdminister, c.Reason)
	if err != nil {
		return err
	}
	scanned, err := buildfiles.Scan(c.Dir)
	if err != nil {
		return err
	}
	manifest, err := scanned.Manifest.Encode()
	if err != nil {
		return err
	}
	created, err := api.CreateBuild(ctx, &gamelift.CreateBuildInput{
		Name: optional(c.Name), Version: optional(c.Version), OperatingSystem: types.OperatingSystem(c.OperatingSystem), ServerSdkVersion: &c.ServerSDK,
	})
	if err != nil {
		return noService(service.endpoint, err)
	}
	p := &pusher{
		service: service, api: api, build: *created.Build.BuildId, at: *created.StorageLocation, scanned: scanned,
		patience: patience{limit: c.Patience, pause: pauseOfPush, tell: func(text string) { fmt.Fprintf(os.Stderr, "push build %s: %s\n", *created.Build.BuildId, text) }},
	}
	if err := p.push(ctx, created.UploadCredentials, manifest); err != nil {
		_, deleteErr := api.DeleteBuild(context.WithoutCancel(ctx), &gamelift.DeleteBuildInput{BuildId: created.Build.BuildId})
		return errors.Join(fmt.Errorf("push build %s: %w", p.build, err), deleteErr)
	}
	_, err = fmt.Fprintf(stdout, "%s is READY: %s, %.1f MiB, of which %.1f MiB were sent\n", p.build, plural.Of(len(scanned.Manifest.Files), "file", "files"),
		float64(scanned.Manifest.Size())/(1<<20), float64(p.sent.Load())/(1<<20))
	return err
}

// pusher sends one build.
type pusher struct {
	service remoteService
	api     *gamelift.Client
	build   string
	at      types.S3Location
	scanned *buildfiles.Scanned
	sent    atomic.Int64 // bytes of parts so far
	patience
}

func (p *pusher) push(ctx context.Context, key *types.AwsCredentials, manifest []byte) error {
	missing, err := p.parts(ctx, key, builddoor.MissingQuery, manifest)
	for round := 0; err == nil && round < 3; round++ { // the service may have lost a part meanwhile
		if err := p.send(ctx, missing); err != nil {
			return err
		}
		if key, err = p.key(ctx); err != nil { // the first credentials may have expired
			return err
		}
		if missing, err = p.parts(ctx, key, builddoor.CommitQuery, manifest); err == nil && len(missing) == 0 {
			return nil
		}
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%d parts are still missing", len(missing))
}

// key requests new credentials.
func (p *pusher) key(ctx context.Context) (key *types.AwsCredentials, err error) {
	err = p.persist(ctx, func() (again bool, err error) {
		out, err := p.api.RequestUploadCredentials(ctx, &gamelift.RequestUploadCredentialsInput{BuildId: &p.build})
		if err == nil {
			key = out.UploadCredentials
			return false, nil
		}
		return apiMayPass(err), err
	})
	return key, err
}

// credentialsFor is how many parts are sent with the same credentials, which are valid for an hour.
const credentialsFor = 256

func (p *pusher) send(ctx context.Context, missing []buildfiles.Digest) error {
	for len(missing) > 0 {
		key, err := p.key(ctx)
		if err != nil {
			return err
		}
		n := min(len(missing), credentialsFor)
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(pushedAtATime)
		for _, digest := range missing[:n] {
			group.Go(func() error {
				content, err := p.scanned.Part(digest)
				if err == nil {
					_, err = p.ask(ctx, key, http.MethodPut, builddoor.PartQuery+"="+digest.String(), content)
				}
				if err == nil {
					p.sent.Add(int64(len(content)))
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		missing = missing[n:]
	}
	return nil
}

// parts sends the manifest and returns the digests of the missing parts.
func (p *pusher) parts(ctx context.Context, key *types.AwsCredentials, query string, manifest []byte) ([]buildfiles.Digest, error) {
	answer, err := p.ask(ctx, key, http.MethodPost, query+"=", manifest)
	for errors.Is(err, errUnderWay) { // with the same credentials, which are valid for an hour: a READY build gets no new ones
		answer, err = p.ask(ctx, key, http.MethodPost, query+"=", manifest)
	}
	if err != nil || len(answer) == 0 {
		return nil, err
	}
	var missing builddoor.Missing
	err = json.Unmarshal(answer, &missing)
	return missing.Parts, err
}

func (p *pusher) ask(ctx context.Context, key *types.AwsCredentials, method, query string, body []byte) (answer []byte, err error) {
	err = p.persist(ctx, func() (again bool, err error) {
		answer, again, err = p.askOnce(ctx, key, method, query, body)
		return again, err
	})
	return answer, err
}

// errUnderWay means that the nodes of a cluster are still copying the files to each other.
var errUnderWay = errors.New("the nodes still copy the files")

func (p *pusher) askOnce(ctx context.Context, key *types.AwsCredentials, method, query string, body []byte) (answer []byte, again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(p.service.endpoint, "/")+"/"+*p.at.Bucket+"/"+*p.at.Key+"?"+query, bytes.NewReader(body))
	if err != nil {
		return nil, false, err
	}
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	r.Header.Set("X-Amz-Content-Sha256", hash)
	creds := aws.Credentials{AccessKeyID: *key.AccessKeyId, SecretAccessKey: *key.SecretAccessKey, SessionToken: *key.SessionToken}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err := signer.SignHTTP(ctx, creds, r, hash, "s3", p.service.region, time.Now()); err != nil {
		return nil, false, err
	}
	out, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, true, err
	}
	defer out.Body.Close()
	if answer, err = io.ReadAll(out.Body); err != nil {
		return nil, true, err
	}
	if out.StatusCode == http.StatusAccepted {
		return nil, false, errUnderWay
	}
	if out.StatusCode == http.StatusOK || out.StatusCode == http.StatusConflict && out.Header.Get("Content-Type") == "application/json" {
		return answer, false, nil
	}
	var refused struct{ Code, Message string }
	_ = xml.Unmarshal(answer, &refused) // both stay empty if another program answered
	return nil, mayPass(out.StatusCode), fmt.Errorf("the service answered %s: %s", out.Status, refused.Message)
}
