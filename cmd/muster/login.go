package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"

	"github.com/musterhq/muster/internal/awsfile"
	"github.com/musterhq/muster/internal/ssoclient"
)

type loginCommand struct {
	Name          string `arg:"" optional:"" default:"muster" help:"Profile written by muster aws-profile --sso."`
	Server        string `placeholder:"URL" help:"URL of the service: writes the profile first, as muster aws-profile --sso does."`
	UseDeviceCode bool   `name:"use-device-code" help:"Show a code to enter in a browser on any machine, instead of opening one here."`
	NoBrowser     bool   `name:"no-browser" help:"Do not open a browser; only print the URL."`
}

func (c *loginCommand) Run(ctx context.Context, stdout io.Writer, env environment) error {
	if c.Server != "" {
		write := awsProfileCommand{PublicURL: c.Server, Name: c.Name, Region: signingRegion(env), SSO: true}
		if err := write.Run(ctx, io.Discard, env); err != nil {
			return err
		}
	}
	p, home, err := signInProfile(env, c.Name)
	if err != nil {
		return err
	}
	l := ssoclient.Login{Profile: p, Home: home, Client: http.DefaultClient, Out: stdout}
	how := l.WithBrowser
	if c.UseDeviceCode {
		how = l.WithDevice
	} else if !c.NoBrowser {
		l.Open = func(at string) error { return openAddress(ctx, env, at) }
	}
	if err := how(ctx); err != nil {
		return noService(p.Endpoint, err)
	}
	_, err = fmt.Fprintf(stdout, "Signed in at %s. Use it with:\n\n    muster top --profile %s\n    aws --profile %[2]s sts get-caller-identity\n", p.Endpoint, p.Name)
	return err
}

// openAddress opens an address in the browser that BROWSER names, or else in the default one.
func openAddress(ctx context.Context, env environment, at string) error {
	own := strings.Fields(env["BROWSER"])
	if len(own) == 0 {
		return openPage(ctx, at, browserCommand)
	}
	named := false
	for i, word := range own {
		if strings.Contains(word, "%s") {
			own[i], named = strings.ReplaceAll(word, "%s", at), true
		}
	}
	if !named {
		own = append(own, at)
	}
	return exec.CommandContext(ctx, own[0], own[1:]...).Start() // #nosec G204 -- the person's own program
}

// signInProfile returns a profile for signing in.
func signInProfile(env environment, name string) (p ssoclient.Profile, home string, err error) {
	config, _, err := awsFiles(env)
	if err != nil {
		return p, "", err
	}
	file, err := awsfile.Open(config)
	if err != nil {
		return p, "", err
	}
	p, ok := ssoclient.Read(file, name)
	if !ok {
		return p, "", fmt.Errorf("profile %q: %s has no sign-in profile of this name; write one with `muster aws-profile %[1]s --sso --public-url URL`", name, config)
	}
	home, err = homeOf(env)
	return p, home, err
}

type logoutCommand struct {
	Name string `arg:"" optional:"" default:"muster" help:"Profile of the sign-in."`
}

func (c *logoutCommand) Run(ctx context.Context, stdout io.Writer, env environment) error {
	p, home, err := signInProfile(env, c.Name)
	if err != nil {
		return err
	}
	ended, err := p.Logout(ctx, home, http.DefaultClient)
	if err != nil {
		return err
	}
	text := "Nobody had signed in with profile " + p.Name + "."
	if ended {
		text = "Signed out of " + p.Endpoint + ": the tokens and temporary credentials of this sign-in no longer work."
	}
	_, err = fmt.Fprintln(stdout, text)
	return err
}
