package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/musterhq/muster/internal/audit"
	"github.com/musterhq/muster/internal/identity"
)

// drainCommand is a thin client: it sets the tag muster:drain on a compute, which every AWS client can do, and counts the
// remaining game sessions there.
type drainCommand struct {
	serviceFlags
	reasonFlag
	Fleet  string `placeholder:"FLEET" help:"The compute's fleet, if several fleets have a compute of that name."`
	Undo   bool   `instead:"no-wait" help:"End the drain: the compute gets new game sessions again."`
	NoWait bool   `name:"no-wait" help:"Do not wait until the compute is empty."`

	Every   time.Duration `hidden:"" default:"2s"`
	Compute string        `arg:"" help:"Name of the compute."`
}

func (c *drainCommand) Run(ctx context.Context, stdout io.Writer, env environment) error {
	api, service, err := c.api(ctx, env, identity.MayAdminister, c.Reason)
	if err != nil {
		return err
	}
	x, err := c.find(ctx, api)
	if err != nil {
		return noService(service.endpoint, err)
	}
	// The ARN of a compute does not contain its fleet; the service also accepts one that does.
	arn := strings.TrimSuffix(*x.ComputeArn, "compute/"+c.Compute) + "compute/" + *x.FleetId + "/" + c.Compute
	if c.Undo {
		if _, err := api.UntagResource(ctx, &gamelift.UntagResourceInput{ResourceARN: &arn, TagKeys: []string{"muster:drain"}}); err != nil {
			return fmt.Errorf("undo the drain of compute %s: %w", c.Compute, err)
		}
		_, err := fmt.Fprintf(stdout, "compute %s of fleet %s gets new game sessions again\n", c.Compute, *x.FleetId)
		return err
	}
	if _, err := api.TagResource(ctx, &gamelift.TagResourceInput{
		ResourceARN: &arn, Tags: []types.Tag{{Key: aws.String("muster:drain"), Value: aws.String("true")}},
	}); err != nil {
		return fmt.Errorf("drain compute %s: %w", c.Compute, err)
	}
	if _, err := fmt.Fprintf(stdout, "compute %s of fleet %s gets no new game sessions\n", c.Compute, *x.FleetId); err != nil || c.NoWait {
		return err
	}
	return c.wait(ctx, api, x, stdout)
}

// withReason makes an AWS client send the reason with each request.
func withReason(reason string) []func(*middleware.Stack) error {
	options := []func(*middleware.Stack) error{smithyhttp.SetHeaderValue("User-Agent", userAgent)}
	if reason != "" {
		options = append(options, smithyhttp.SetHeaderValue(audit.ReasonHeader, reason))
	}
	return options
}

// find returns the compute in the named fleet, or in the only fleet that has it.
func (c *drainCommand) find(ctx context.Context, api *gamelift.Client) (*types.Compute, error) {
	fleets := []string{c.Fleet}
	if c.Fleet == "" {
		fleets = nil
		for pages := gamelift.NewListFleetsPaginator(api, &gamelift.ListFleetsInput{}); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, fmt.Errorf("list the fleets: %w", err)
			}
			fleets = append(fleets, page.FleetIds...)
		}
	}
	var found *types.Compute
	for _, id := range fleets {
		out, err := api.DescribeCompute(ctx, &gamelift.DescribeComputeInput{FleetId: &id, ComputeName: &c.Compute})
		if _, none := errors.AsType[*types.NotFoundException](err); none {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for compute %s in fleet %s: %w", c.Compute, id, err)
		}
		if found != nil {
			return nil, fmt.Errorf("compute %s: fleets %s and %s have a compute of that name; choose one with --fleet", c.Compute, *found.FleetId, id)
		}
		found = out.Compute
	}
	if found == nil {
		return nil, fmt.Errorf("compute %s: no fleet has a compute of that name", c.Compute)
	}
	return found, nil
}

// wait prints the number of remaining game sessions each time it changes, until there are none. It outlasts a restart of the service.
func (c *drainCommand) wait(ctx context.Context, api *gamelift.Client, x *types.Compute, stdout io.Writer) error {
	p := patience{
		limit: awaitPatience, pause: func(int) <-chan time.Time { return time.After(c.Every) },
		tell: func(text string) { fmt.Fprintf(os.Stderr, "drain compute %s: %s\n", c.Compute, text) },
	}
	told := -1
	for {
		left := 0
		err := p.persist(ctx, func() (again bool, err error) {
			left, err = gamesOn(ctx, api, x)
			return apiMayPass(err), err
		})
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("stopped waiting before the compute was empty: %w; compute %s stays drained", ctx.Err(), c.Compute)
		case err != nil:
			return fmt.Errorf("%w; compute %s stays drained", err, c.Compute)
		case left == 0:
			_, err := fmt.Fprintf(stdout, "compute %s is empty\n", c.Compute)
			return err
		case left != told:
			if _, err := fmt.Fprintf(stdout, "game sessions left: %d\n", left); err != nil {
				return err
			}
			told = left
		}
		select {
		case <-ctx.Done():
		case <-time.After(c.Every):
		}
	}
}

// gamesOn counts the game sessions on a compute that have not ended.
func gamesOn(ctx context.Context, api *gamelift.Client, x *types.Compute) (n int, err error) {
	for _, status := range []types.GameSessionStatus{types.GameSessionStatusActivating, types.GameSessionStatusActive, types.GameSessionStatusTerminating} {
		in := gamelift.DescribeGameSessionsInput{FleetId: x.FleetId, Location: x.Location, StatusFilter: aws.String(string(status))}
		for pages := gamelift.NewDescribeGameSessionsPaginator(api, &in); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return 0, fmt.Errorf("count the game sessions of fleet %s: %w", *x.FleetId, err)
			}
			for _, g := range page.GameSessions {
				if g.ComputeName != nil && *g.ComputeName == *x.ComputeName {
					n++
				}
			}
		}
	}
	return n, nil
}
