//go:build !quick

package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/doctor"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/operator"
	"github.com/musterhq/muster/internal/plural"
	"github.com/musterhq/muster/internal/settings"
)

// doctorCommand takes the same flags as serve, and examines the environment that serve would run in.
type doctorCommand struct {
	settings.Settings
	Profile string `placeholder:"NAME" help:"AWS profile whose access key to use. Otherwise: AWS_ACCESS_KEY_ID, AWS_PROFILE, a key of the data directory, or none."`
	Fleet   string `placeholder:"ID" help:"Fleet for the InitSDK check. Default: one that has a compute."`
	Compute string `placeholder:"NAME" help:"Compute of that fleet."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

// errUnwell is returned if a check fails. The printed findings have the details.
var errUnwell = errors.New("something does not work")

// hangPatience is how long the service may take to answer that it runs. A service under load needs much less.
const hangPatience = 5 * time.Second

// Run prints all findings; as text, it prints each as soon as it is known. It returns an error if one of them is a failure.
func (c *doctorCommand) Run(ctx context.Context, stdout io.Writer, env environment) error {
	endpoint, err := apiEndpoint(c.Listen, c.PublicURL)
	if err != nil {
		return err
	}
	data := dataFlag{Data: c.Data, SecretKeyFile: c.SecretKeyFile}
	x := &doctor.Config{Settings: c.Settings, Endpoint: endpoint, Version: versionText(), NoSDK: "the service was not found"}
	asked := ctx
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	try := &sdkTrial{remote: remoteService{endpoint: endpoint, region: signingRegion(env)}, fleet: c.Fleet, compute: c.Compute}
	x.Seek = func(ctx context.Context, x *doctor.Config) {
		key, err := environmentKey(env, c.Profile)
		if x.Running, x.Hangs = data.served(ctx); x.Hangs == nil {
			key, err = accessKey(ctx, env, c.Profile, &data, identity.MayOperate)
		}
		try.remote.key, x.NoService, x.InitSDK = key, err, try.run
		if err == nil && (key.AccessKeyID != "" || c.Dev) {
			x.Service = &doctorService{topService{try.remote}}
		}
	}
	if !c.JSON {
		x.Tell = func(f doctor.Finding) { tellFinding(stdout, f) }
	}
	found := doctor.Examine(ctx, x)
	if asked.Err() != nil {
		return asked.Err()
	}
	if c.JSON {
		err = printFindings(stdout, found)
	} else {
		err = countFindings(stdout, found)
	}
	if err != nil {
		return err
	}
	if doctor.Worst(found) == doctor.Failure {
		return errUnwell
	}
	return nil
}

// served reports whether a service runs on the data directory. hangs is the error if that service does not answer.
func (f *dataFlag) served(ctx context.Context) (runs bool, hangs error) {
	client, err := f.client()
	if err != nil {
		return false, nil
	}
	return client.Runs(ctx, hangPatience)
}

// printFindings prints findings as JSON.
func printFindings(stdout io.Writer, found []doctor.Finding) error {
	return printJSON(stdout, struct {
		Worst    doctor.Level     `json:"worst"`
		Findings []doctor.Finding `json:"findings"`
	}{doctor.Worst(found), found})
}

func tellFinding(stdout io.Writer, f doctor.Finding) {
	text := fmt.Sprintf("%-8s %s: %s\n", f.Level, f.Check, printable(f.Found))
	if f.Do != "" {
		text += fmt.Sprintf("         → %s\n", printable(f.Do))
	}
	_, _ = io.WriteString(stdout, text) // countFindings returns the error of an output that is gone
}

func countFindings(stdout io.Writer, found []doctor.Finding) error {
	counts := map[doctor.Level]int{}
	for _, f := range found {
		counts[f.Level]++
	}
	_, err := fmt.Fprintf(stdout, "\n%d ok, %s, %s, %d skipped\n", counts[doctor.OK], plural.Of(counts[doctor.Warning], "warning", "warnings"),
		plural.Of(counts[doctor.Failure], "failure", "failures"), counts[doctor.Skipped])
	return err
}

// doctorService asks the operators' door.
type doctorService struct{ topService }

func (s *doctorService) Hosts(ctx context.Context) (*operator.HostList, error) {
	return look[operator.HostList](ctx, &s.topService, "hosts", "")
}

// sdkTrial tries to connect a server process.
type sdkTrial struct {
	remote         remoteService
	fleet, compute string
	url, token     string
}

// sdkPatience limits the trial.
const sdkPatience = 20 * time.Second

// prepare finds a compute and its token, or returns why there is none.
func (t *sdkTrial) prepare(ctx context.Context) (why string) {
	ctx, cancel := context.WithTimeout(ctx, operatorPatience)
	defer cancel()
	api := gamelift.New(gamelift.Options{Region: t.remote.region, BaseEndpoint: &t.remote.endpoint, RetryMaxAttempts: 1, Credentials: t.remote.credentials()})
	fleets := []string{t.fleet}
	if t.fleet == "" {
		list, err := api.ListFleets(ctx, &gamelift.ListFleetsInput{Limit: aws.Int32(20)})
		if err != nil {
			return fmt.Sprintf("the fleets could not be listed: %v", noService(t.remote.endpoint, err))
		}
		fleets = list.FleetIds
	}
	for _, fleet := range fleets {
		compute := t.compute
		if compute == "" {
			list, err := api.ListCompute(ctx, &gamelift.ListComputeInput{FleetId: &fleet, Limit: aws.Int32(1)})
			if err != nil || len(list.ComputeList) == 0 {
				continue
			}
			compute = aws.ToString(list.ComputeList[0].ComputeName)
		}
		described, err := api.DescribeCompute(ctx, &gamelift.DescribeComputeInput{FleetId: &fleet, ComputeName: &compute})
		if err != nil {
			return fmt.Sprintf("compute %s of fleet %s: %v", compute, fleet, noService(t.remote.endpoint, err))
		}
		token, err := api.GetComputeAuthToken(ctx, &gamelift.GetComputeAuthTokenInput{FleetId: &fleet, ComputeName: &compute})
		if err != nil {
			return fmt.Sprintf("the token of compute %s of fleet %s: %v", compute, fleet, err)
		}
		t.fleet, t.compute = fleet, compute
		t.url, t.token = aws.ToString(described.Compute.GameLiftServiceSdkEndpoint), aws.ToString(token.AuthToken)
		return ""
	}
	return "no compute exists with which a server process could connect; register one, or name one with --fleet and --compute"
}

// run connects a process as InitSDK does, and ends it like an unneeded game server, so that the service counts no crash.
func (t *sdkTrial) run(ctx context.Context, trust *tls.Config) error {
	if why := t.prepare(ctx); why != "" {
		return doctor.Untried(why)
	}
	ctx, cancel := context.WithTimeout(ctx, sdkPatience)
	defer cancel()
	client, err := linkclient.Dial(ctx, linkclient.Options{URL: t.url, Process: "muster-doctor-" + rand.Text(), Compute: t.compute, Fleet: t.fleet, Token: t.token, TLS: trust})
	if err != nil {
		return fmt.Errorf("%s: %w", t.url, err)
	}
	defer client.Drop()
	if err := client.Terminate(ctx); err != nil {
		return fmt.Errorf("ProcessEnding: %w", err)
	}
	client.Close(closeNormal)
	return nil
}

// closeNormal is the status code of a normal WebSocket closure (RFC 6455, section 7.4.1).
const closeNormal = 1000
