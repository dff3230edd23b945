package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/operator"
)

type computesCommand struct {
	RotateToken rotateTokenCommand `cmd:"" name:"rotate-token" help:"Replace the auth token of a compute at once, for example after a leak: earlier tokens become invalid, and connections made with them end."`
}

type rotateTokenCommand struct {
	adminChange
	KeepLinks bool `name:"keep-links" help:"Keep connections and send their game servers the new token. Not after a leak: a connected intruder would receive it, too."`

	Fleet   string `arg:"" help:"Id of the fleet."`
	Compute string `arg:"" help:"Name of the compute."`
}

func (c *rotateTokenCommand) Run(ctx context.Context, stdout io.Writer, env environment) error {
	query := url.Values{"fleet": {c.Fleet}, "compute": {c.Compute}, "keep-links": {strconv.FormatBool(c.KeepLinks)}}
	var rotated operator.RotatedToken
	if err := c.post(ctx, env, operator.RotateTokenPath+"?"+query.Encode(), nil, &rotated); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "compute %s of fleet %s has a new auth token, valid until %s; all earlier tokens are void. Get it with get-compute-auth-token.\n",
		rotated.Compute, rotated.Fleet, rotated.Expires.Format(time.RFC3339))
	return err
}
