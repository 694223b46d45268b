// What follows from the calculator's numbers: every convention's figures, and the sum by the chosen one.
#pragma once

#include "app/desktop/widgets.h"
#include "app/panels/mfu/calculator.h"

namespace stepladder {

std::string percent(double share);
Tone tone_of_share(double share);  // suspicious, impossible

// `published_range` is what published runs reach by this convention. A click on another convention takes it.
void draw_answer(const MfuForm& form, MfuConvention& convention, const std::string& published_range,
                 const HardwareTable& table);

}  // namespace stepladder
