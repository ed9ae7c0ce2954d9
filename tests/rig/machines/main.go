// Command machines is what a rig's control plane lacks: a simulated cloud whose machines join as nodes with
// stages and delays, kubelets that run pods, model servers with metrics, and the traffic for them.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

type options struct {
	kubeconfig, config, listen, state string
	aws, azure, ca, wire              string
	speed                             float64
	seed                              uint64
}

func main() {
	log.SetFlags(log.LstdFlags | log.Lmicroseconds)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) > 1 && os.Args[1] == "populate" {
		err = populate(ctx, os.Args[2:])
	} else {
		err = serve(ctx, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "machines:", err)
		os.Exit(3)
	}
}

func parse(arguments []string) options {
	var o options
	flags := flag.NewFlagSet("machines", flag.ExitOnError)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "of the API server that nodes join; without it there is only the cloud")
	flags.StringVar(&o.config, "config", "", "JSON file: groups, pools, faults")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "loopback address of the cloud's API")
	flags.Float64Var(&o.speed, "speed", 1, "simulated seconds that pass in a real one")
	flags.Uint64Var(&o.seed, "seed", 1, "of the drawn delays")
	flags.StringVar(&o.state, "state", "", "JSON file that keeps the cloud over a restart")
	flags.StringVar(&o.aws, "aws", "", "loopback address at which the account speaks AWS's own APIs, over HTTPS")
	flags.StringVar(&o.azure, "azure", "", "loopback address at which the tenant speaks Azure's own APIs, over HTTPS")
	flags.StringVar(&o.ca, "ca", "", "file for the certificate of the authority that HTTPS is signed by")
	flags.StringVar(&o.wire, "wire", "", "file that gets a JSON line for each exchange at the clouds' own APIs")
	flags.Parse(arguments)
	if o.config == "" || o.speed <= 0 || flags.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "machines: --config FILE is needed, --speed is above 0, and there are no other words")
		os.Exit(2)
	}
	return o
}

func serve(ctx context.Context, arguments []string) error {
	o := parse(arguments)
	conf, err := readConfig(o.config)
	if err != nil {
		return err
	}
	listener, err := listenLoopback(o.listen)
	if err != nil {
		return err
	}
	k, err := openCloud(conf, o.speed, o.seed, o.state)
	if err != nil {
		return err
	}
	t, err := openTraffic(k)
	if err != nil {
		return err
	}
	var fleet *fleet
	if o.kubeconfig != "" {
		if fleet, err = startFleet(ctx, k, t, o, listener.Addr().(*net.TCPAddr).Port); err != nil {
			return err
		}
	}
	go keepTime(ctx, k, t)
	f := &front{cloud: k, traffic: t, fleet: fleet}
	routes := f.routes()
	if err := openDoors(ctx, f, o, routes); err != nil {
		return err
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	return serveOn(ctx, listener, routes)
}

// openDoors lets clouds speak their own protocols: HTTPS at addresses of their own, what is plain HTTP in plain.
func openDoors(ctx context.Context, f *front, o options, plain *http.ServeMux) error {
	if o.aws == "" && o.azure == "" {
		return nil
	}
	if o.ca == "" {
		return fmt.Errorf("--aws and --azure need --ca FILE, which clients are to trust")
	}
	secure, err := serverTLS(o.ca)
	if err != nil {
		return err
	}
	log, err := openWire(o.wire)
	if err != nil {
		return err
	}
	if o.aws != "" {
		door, err := openAWS(f, log, plain)
		if err == nil {
			err = openDoor(ctx, "aws", o.aws, secure, door)
		}
		if err != nil {
			return err
		}
	}
	if o.azure != "" {
		return openDoor(ctx, "azure", o.azure, secure, openAzure(f, log, plain))
	}
	return nil
}

func openDoor(ctx context.Context, name, address string, secure *tls.Config, handler http.Handler) error {
	listener, err := listenLoopback(address)
	if err != nil {
		return err
	}
	go func() {
		if err := serveOn(ctx, tls.NewListener(listener, secure), handler); err != nil {
			log.Printf("%s: %v", name, err)
		}
	}()
	fmt.Printf("%s on https://%s\n", name, listener.Addr())
	return nil
}

func serveOn(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// listenLoopback refuses to be reachable from anywhere else.
func listenLoopback(address string) (net.Listener, error) {
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	if !resolved.IP.IsLoopback() {
		return nil, fmt.Errorf("--listen %s: only addresses of 127.0.0.0/8 are allowed", address)
	}
	return net.ListenTCP("tcp", resolved)
}

// keepTime lets the cloud and the traffic go on.
func keepTime(ctx context.Context, k *cloud, t *traffic) {
	for sleepReal(ctx, 20*time.Millisecond) {
		now := time.Now()
		k.mu.Lock()
		k.advance(now.UnixMilli())
		if k.dirty {
			if err := k.save(); err != nil {
				log.Print(err)
			}
		}
		k.mu.Unlock()
		t.advance(k.clock.seconds(now))
	}
}
