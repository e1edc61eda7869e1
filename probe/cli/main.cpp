#include "probe/program.hpp"

int main(int argc, char** argv) { return slacktier::probe_program(argc, argv); }
