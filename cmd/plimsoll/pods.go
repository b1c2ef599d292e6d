package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/input"
	"plimsoll/internal/load/workers"
	"plimsoll/internal/model"
)

const (
	leadName = "load-lead"
	podName  = "pod"
)

// How the pods of a load find one another, and what they have in common.
const (
	podsService = "plimsoll-load"
	podsPort    = 7353
	podsDir     = "/etc/plimsoll-load"
	planFile    = "plan.json"
	certFile    = "pods.crt"
	keyFile     = "pods.key"
)

// maxSecret is the most bytes of a Secret's values that Kubernetes takes.
const maxSecret = 1 << 20

// indexVariable is where Kubernetes puts the number of an Indexed Job's pod.
const indexVariable = "JOB_COMPLETION_INDEX"

// loadLead is the pod that leads a load of pods: it waits for the workers, has them play what lies in a directory, and tells what came of it.
func loadLead(w *world) *cobra.Command {
	c := &cobra.Command{Use: leadName + " DIR", Short: "lead a load of pods (what load --kubernetes prints starts it)", Hidden: true, Args: oneArgument("the directory of the plan and the key")}
	var out loadOutput
	out.add(c)
	may := c.Flags().Bool("yes-i-may", false, "as load has it")
	listen := c.Flags().String("listen", ":"+strconv.Itoa(podsPort), "where the workers call (`ADDRESS`)")
	drive := func(c *cobra.Command, args []string) error {
		plan, key, err := readPods(args[0])
		if err != nil {
			return fail(exitUsage, err)
		}
		gate, err := workers.OpenGate(*listen, key, len(plan.From))
		if err != nil {
			return fail(exitUnreachable, err)
		}
		defer gate.Close()
		crew := crewOfPods(w, gate, plan)
		defer crew.close()
		return playLoad(c, w, crew, plan, &out, *may)
	}
	c.RunE = func(c *cobra.Command, args []string) error { return out.around(c, args, w, drive, true) }
	return c
}

// readPods reads what all pods of a load have.
func readPods(dir string) (plan model.LoadPlan, key tls.Certificate, err error) {
	text, err := input.Read(filepath.Join(dir, planFile), maxSecret)
	if err == nil {
		err = json.Unmarshal(text, &plan)
	}
	if err == nil && len(plan.From) == 0 {
		err = errors.New("it names no workers")
	}
	if err != nil {
		return plan, key, fmt.Errorf("the plan in %s: %w; plimsoll load --kubernetes makes one", dir, err)
	}
	key, err = tls.LoadX509KeyPair(filepath.Join(dir, certFile), filepath.Join(dir, keyFile))
	return plan, key, err
}

// crewOfPods are the workers that a plan names, as they call in.
func crewOfPods(w *world, gate *workers.Gate, plan model.LoadPlan) *crew {
	var places []workers.Place
	for k, from := range plan.From {
		name, spec, _ := strings.Cut(from, "=")
		places = append(places, workers.Place{Name: name, Spec: spec, Host: name, Dial: func(ctx context.Context) (io.ReadWriteCloser, error) {
			conn, err := gate.Await(ctx, k)
			if err != nil {
				return nil, fail(exitUnreachable, fmt.Errorf("%w; kubectl describe job and kubectl get pods tell why", err))
			}
			return conn, nil
		}})
	}
	return &crew{fleet: fleetOf(w, places)}
}

// servePod is a worker that calls the pod which leads.
func servePod(ctx context.Context, w *world, address, dir string) error {
	k, err := strconv.Atoi(w.env(indexVariable))
	if err != nil || k < 0 {
		return fail(exitUsage, fmt.Errorf("%s=%s: want the number of this worker, as a Job with completionMode: Indexed sets it", indexVariable, w.env(indexVariable)))
	}
	_, key, err := readPods(dir)
	if err != nil {
		return fail(exitUsage, err)
	}
	conn, err := workers.Call(ctx, address, key, k)
	if err != nil {
		return fail(exitUnreachable, err)
	}
	defer conn.Close()
	fmt.Fprintf(w.stderr, "plimsoll: worker %d is let in at %s\n", k, address)
	return serveShares(ctx, conn, conn)
}
